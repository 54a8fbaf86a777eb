// The module of the tab GPU: Python sends it when the tab is opened, so that no notebook holds copies of it.

/** @import { Kernel, Model } from "./model/questions.js" */
/** @import { Explorer } from "./model/state.js" */

import { gpuView } from "./views/gpu.js";

/** @param {Explorer} store @param {Kernel} kernel @param {Model} model */
export const view = (store, kernel, model) => gpuView(store, kernel, model.get("gpu"));
