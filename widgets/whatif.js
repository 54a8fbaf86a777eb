// The module of the tab What if, which is of use with Python only: Python sends it when the tab is opened.

export { whatIfView as view } from "./views/whatif.js";
