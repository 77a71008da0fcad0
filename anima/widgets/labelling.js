// The screen of a labelling session. Everything shown comes as text of one state; the kernel decides and saves.
const make = (name, className, text) => {
  const node = document.createElement(name);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
};

function render({ model, el }) {
  const root = make("div", "anima-label");
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", "Blind labelling");
  root.dataset.lmSuppressShortcuts = "true"; // JupyterLab's one-letter commands would change the cell

  const top = make("div", "al-top");
  const progress = make("span", "al-progress");
  const who = make("label", "al-who", "Annotator");
  const name = make("input");
  name.type = "text";
  name.autocomplete = "off";
  who.append(name);
  top.append(progress, who);

  const bar = make("div", "al-bar");
  bar.setAttribute("role", "progressbar");
  bar.setAttribute("aria-label", "Items labelled");
  bar.append(make("div"));

  const item = make("div", "al-item");
  item.tabIndex = 0;
  item.setAttribute("role", "region");
  item.setAttribute("aria-label", "Item to label");
  item.setAttribute("aria-live", "polite");
  const number = make("p", "al-number");
  const text = make("p", "al-text");
  text.dir = "auto";
  item.append(number, text);

  const choices = make("div", "al-row");
  choices.setAttribute("role", "group");
  choices.setAttribute("aria-label", "Labels");
  const tools = make("div", "al-row");
  const status = make("p", "al-status");
  status.setAttribute("role", "status");
  const hint = make("p", "al-hint", "Keys work while the focus is inside this frame; click the text or tab to it.");
  const details = make("details");
  const kappas = make("ul", "al-kappa");
  details.append(make("summary", "", "Agreement so far (looking at it while labelling may sway you)"), kappas);
  root.append(top, bar, item, choices, tools, status, hint, details);
  el.append(root);

  let shown = {};
  let waiting = null;
  const say = (words, bad) => {
    status.textContent = words;
    status.classList.toggle("al-bad", Boolean(bad));
  };
  const send = (message) => {
    if (waiting !== null) return; // what comes before the answer was meant for a text that nobody has read
    waiting = setTimeout(() => {
      waiting = null;
      say("No answer from the kernel: the last step may not be saved. Run the cell again to go on.", true);
    }, 15000);
    model.send({ ...message, item: shown.item ?? null });
  };
  const button = (key, label, act) => {
    const node = make("button");
    node.type = "button";
    node.setAttribute("aria-keyshortcuts", key);
    const cap = make("kbd", "", key);
    cap.setAttribute("aria-hidden", "true");
    node.append(cap, make("span", "", label));
    node.addEventListener("click", () => node.getAttribute("aria-disabled") !== "true" && act());
    return node;
  };
  const skip = button("s", "Skip", () => send({ do: "skip" }));
  const undo = button("u", "Undo", () => send({ do: "undo" }));
  tools.append(skip, undo);
  const keys = { s: skip, u: undo };

  root.addEventListener("keydown", (event) => {
    if (event.target === name || event.ctrlKey || event.metaKey || event.altKey) return;
    const target = keys[event.key.toLowerCase()];
    if (!target) return;
    event.preventDefault();
    event.stopPropagation();
    if (!event.repeat) target.click();
  });
  name.addEventListener("change", () => model.send({ do: "annotator", name: name.value }));
  name.addEventListener("keydown", (event) => event.key === "Enter" && item.focus());
  details.addEventListener("toggle", () => model.send({ do: "agreement", open: details.open }));

  let drawn = "";
  const draw = () => {
    clearTimeout(waiting);
    waiting = null;
    shown = model.get("state");
    const wanted = JSON.stringify(shown.keys);
    if (wanted !== drawn) { // kept otherwise, so that the focus stays where it is
      choices.replaceChildren();
      for (const [key, label] of shown.keys) {
        keys[key] = button(key, label, () => send({ do: "label", label }));
        choices.append(keys[key]);
      }
      drawn = wanted;
    }
    progress.textContent = shown.progress;
    bar.setAttribute("aria-valuemax", shown.total);
    bar.setAttribute("aria-valuenow", shown.done);
    bar.firstChild.style.width = `${(100 * shown.done) / shown.total}%`;
    if (document.activeElement !== name) name.value = shown.annotator;
    if (number.textContent !== shown.number) number.textContent = shown.number;
    if (text.textContent !== shown.text) text.textContent = shown.text;
    for (const node of [...choices.children, skip]) node.setAttribute("aria-disabled", String(shown.item === null));
    undo.setAttribute("aria-disabled", String(!shown.undo));
    say(shown.status, shown.bad);
    kappas.replaceChildren(...shown.agreement.map((line) => make("li", "", line)));
  };
  model.on("change:state", draw);
  draw();
  details.open = shown.open;
  return () => {
    clearTimeout(waiting);
    model.off("change:state", draw);
  };
}

export default { render };
