// Small helpers for building the page: text is only ever set as text.

export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value == null) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name in node && typeof value !== "string") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child != null && child !== false));
  return node;
}

export const find = (selector, root = document) => root.querySelector(selector);
export const all = (selector, root = document) => [...root.querySelectorAll(selector)];

let uses = 0;
export const uid = (stem) => `${stem}-${++uses}`;

// Icons of 16 by 16, drawn with strokes.
const ICONS = {
  error: "M8 1.8a6.2 6.2 0 1 0 .01 0zM5.8 5.8l4.4 4.4M10.2 5.8l-4.4 4.4",
  warning: "M8 2.2L14.4 13.4H1.6zM8 6.4v3.2M8 11.4v.1",
  info: "M8 1.8a6.2 6.2 0 1 0 .01 0zM8 7.2v4M8 4.9v.1",
  tick: "M3 8.6l3.4 3.4L13 4.6",
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  fit: "M2 6V2h4M10 2h4v4M14 10v4h-4M6 14H2v-4",
  trash: "M2.5 4.5h11M6 4.5v-2h4v2M4 4.5l.7 9h6.6l.7-9M6.7 7v4M9.3 7v4",
  play: "M4.5 2.8v10.4L13 8z",
  flag: "M4 14V2.4M4 3h8.4L10 6l2.4 3H4",
};

export function icon(name) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  for (const [key, value] of Object.entries({ viewBox: "0 0 16 16", class: `icon i-${name}`, "aria-hidden": "true" }))
    svg.setAttribute(key, value);
  const path = document.createElementNS(space, "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

export function later(wait, action) {
  let timer = 0;
  const run = (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      timer = 0;
      action(...given);
    }, wait);
  };
  run.cancel = () => {
    clearTimeout(timer);
    timer = 0;
  };
  run.now = (...given) => {
    clearTimeout(timer);
    timer = 0;
    return action(...given);
  };
  Object.defineProperty(run, "waiting", { get: () => timer !== 0 });
  return run;
}

// ---- messages

// What the person just did, said once, quietly; it goes by itself.
export function toast(message, kind = "info", action = null) {
  const place = find("#editor-toasts");
  const note = el("p", { class: `note ${kind}`, role: kind === "error" ? "alert" : "status" }, icon(kind === "info" ? "tick" : kind), el("span", {}, message));
  const close = () => note.remove();
  if (action) note.append(el("button", { type: "button", class: "link", onclick: () => (close(), action.run()) }, action.label));
  note.append(el("button", { type: "button", class: "close", "aria-label": "Close", onclick: close }, "×"));
  place.replaceChildren(...[...place.children].slice(-2), note);
  setTimeout(close, kind === "error" ? 12000 : 6000);
}

// What stays true until something changes: one line above the panes for each reason.
export function banner(name, message = "", ...actions) {
  const place = find("#editor-banners");
  find(`[data-banner="${name}"]`, place)?.remove();
  if (!message) return;
  const buttons = actions.map(({ label, run, href }) =>
    href
      ? el("a", { class: "button small", href, ...(href.includes("login") ? { target: "_blank", rel: "noopener" } : {}) }, label)
      : el("button", { type: "button", class: "button small", onclick: run }, label),
  );
  place.append(el("div", { class: "banner", "data-banner": name, role: "status" }, icon("warning"), el("span", {}, message), ...buttons));
}

// ---- dialogs

// A form in a dialog; resolves to its values, or to null where it was left.
export function form(title, fields, { submit = "OK", danger = false, text = "", check = null } = {}) {
  return new Promise((resolve) => {
    const heading = uid("dialog");
    const problem = el("p", { class: "problem", role: "alert" });
    const inputs = {};
    const rows = fields.map((field) => {
      const id = uid("field");
      const input = field.options
        ? el("select", { id, name: field.name }, field.options.map((option) => el("option", { value: option.value ?? option }, option.label ?? option)))
        : field.long
          ? el("textarea", { id, name: field.name, rows: "4" })
          : el("input", { id, name: field.name, type: "text", autocomplete: "off", spellcheck: "false", list: field.choices ? `${id}-list` : null });
      input.value = field.value ?? (field.options ? (field.options[0]?.value ?? field.options[0] ?? "") : "");
      if (field.required) input.required = true;
      inputs[field.name] = input;
      const list = field.choices ? el("datalist", { id: `${id}-list` }, field.choices.map((value) => el("option", { value }))) : null;
      return el("div", { class: "field" }, el("label", { for: id }, field.label), input, list, field.help ? el("small", {}, field.help) : null);
    });
    const dialog = el(
      "dialog",
      { class: "editor-dialog", "aria-labelledby": heading },
      el(
        "form",
        { method: "dialog" },
        el("h2", { id: heading }, title),
        text ? el("p", {}, text) : null,
        ...rows,
        problem,
        el(
          "div",
          { class: "buttons" },
          el("button", { type: "button", class: "button", onclick: () => dialog.close() }, "Cancel"),
          el("button", { type: "submit", class: danger ? "button danger" : "button primary" }, submit),
        ),
      ),
    );
    let answer = null;
    let trying = null; // While the values are being checked: a second press does nothing, and leaving undoes nothing.
    const attempt = async () => {
      const values = Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, input.value.trim()]));
      const wrong = check ? await check(values) : "";
      if (wrong) {
        problem.textContent = wrong;
        return;
      }
      answer = values;
      dialog.close();
    };
    find("form", dialog).addEventListener("submit", (event) => {
      event.preventDefault();
      trying ??= attempt().finally(() => (trying = null));
    });
    const before = document.activeElement;
    dialog.addEventListener("close", async () => {
      dialog.remove();
      before?.focus?.();
      await Promise.allSettled([trying]);
      resolve(answer);
    });
    document.body.append(dialog);
    dialog.showModal();
    const first = Object.values(inputs)[0];
    first?.focus();
    first?.select?.();
  });
}

// Markdown of a hover as nodes: paragraphs, code, strong; everything else stays the text that it is.
export function prose(markdown) {
  const place = el("div", { class: "prose" });
  const inline = (text) =>
    text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part) => {
      if (part.startsWith("`") && part.endsWith("`") && part.length > 2) return el("code", {}, part.slice(1, -1));
      if (part.startsWith("**") && part.length > 4) return el("strong", {}, part.slice(2, -2));
      return part;
    });
  const parts = markdown.split(/^```\w*\n([\s\S]*?)^```$/m);
  parts.forEach((part, index) => {
    if (index % 2) place.append(el("pre", {}, part));
    else
      for (const paragraph of part.split(/\n{2,}/)) {
        if (!paragraph.trim()) continue;
        const lines = paragraph.trim().split("\n");
        if (lines.every((line) => /^[-*] /.test(line))) place.append(el("ul", {}, lines.map((line) => el("li", {}, inline(line.slice(2))))));
        else place.append(el("p", {}, inline(lines.join("\n"))));
      }
  });
  return place;
}
