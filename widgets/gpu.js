// The module of the tab GPU: Python sends it when the tab is opened, so that no notebook holds copies of it.

export { gpuView } from "./views/gpu.js";
