const text = (name) => document.getElementById(name).textContent;
const address = URL.createObjectURL(new Blob([JSON.parse(text("module"))], {type: "text/javascript"}));
const {default: widget} = await import(address);
// Going over the characters of the text itself takes ten times as long.
function bytes(packed) {
  const text = atob(packed);
  const all = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) all[i] = text.charCodeAt(i);
  return all;
}
const lowerings = JSON.parse(text("lowerings"));
const links = [...document.querySelectorAll("nav a")];
const place = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
const holder = document.getElementById("explorer");
let shown, state, heard, close, writing;
// Browsers count how often an address is written, so a reader who goes fast is waited for.
function write() {
  if (!state.here) return;
  const named = lowerings.length > 1 ? {lowering: shown.name, ...state.here} : state.here;
  const kept = Object.entries(named).filter(([, one]) => one);
  history.replaceState(null, "", `#${new URLSearchParams(kept).toString().replaceAll("%2C", ",")}`);
}
const model = {
  get: (name) => state[name],
  set(name, value) {
    state[name] = value;
    clearTimeout(writing);
    writing = setTimeout(write, 200);
  },
  on(name, listener) { if (name === "change:place") heard = listener; },
  off() {},
};
async function show() {
  clearTimeout(writing);
  const {lowering, ...rest} = place();
  const named = lowerings.find(({name}) => name === lowering);
  const wanted = named ?? lowerings[0];
  const to = named ? rest : place();
  if (shown === wanted) {
    state.place = to;
    heard?.();
    return;
  }
  close?.();
  shown = wanted;
  state = {live: false, module: JSON.parse(text("gpu")), ...shown.state, data: bytes(shown.data), place: to};
  if (shown.timeline) state.timeline = bytes(shown.timeline);
  holder.replaceChildren();
  links.forEach((link, i) => link.setAttribute("aria-current", lowerings[i] === shown ? "page" : "false"));
  close = await widget.render({model, el: holder});
}
document.getElementById("static").remove();
document.body.classList.add("live");
addEventListener("hashchange", show);
await show();
