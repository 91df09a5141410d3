// The server's drawing as nodes of this page: read as XML, with nothing in it but shapes and text.
//
// A later drawing becomes changes of the one before it: what is the same stays, what only moved is moved, and
// only what is new is read. That is what keeps a picture of a thousand tasks in step with typing.

const SPACE = "http://www.w3.org/2000/svg";
const ALLOWED = new Set(["svg", "g", "path", "rect", "text", "title", "desc", "defs", "symbol", "use"]);
const MOVES = ["d", "x", "y", "width", "height", "transform", "data-line"];
const PLACES = new RegExp(` (${MOVES.join("|")})="([^"]*)"`, "g");
const FRAME = /^<svg\b[^>]*>$/;

export function draw(tag, attributes, ...children) {
  const node = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

export function read(source) {
  const parsed = new DOMParser().parseFromString(source, "image/svg+xml");
  const svg = parsed.documentElement;
  if (svg.namespaceURI !== SPACE || svg.localName !== "svg") return null;
  const walker = parsed.createTreeWalker(svg, NodeFilter.SHOW_ELEMENT);
  const unfit = [];
  for (let node = svg; node; node = walker.nextNode()) {
    if (!ALLOWED.has(node.localName) || node.namespaceURI !== SPACE) unfit.push(node);
    for (const { name } of [...node.attributes]) if (/^on/i.test(name) || name === "style") node.removeAttribute(name);
    const link = node.getAttribute("href");
    if (link && !link.startsWith("#")) node.removeAttribute("href");
  }
  for (const node of unfit) node.remove();
  return document.importNode(svg, true);
}

// A source without its places: what it shows.
const shape = (source) => source.replace(PLACES, " $1");

// An element of the drawing: its source, and the attributes of it that say where things are, in their order.
class Part {
  constructor(source, node) {
    this.source = source;
    this.shape = shape(source);
    this.node = node;
    this.slots = [node, ...node.querySelectorAll("*")].flatMap((one) => [...one.attributes].filter(({ name }) => MOVES.includes(name)).map(({ name }) => [one, name]));
  }

  // False where the source has other places than the node.
  move(source) {
    const values = [...source.matchAll(PLACES)];
    if (values.length !== this.slots.length || values.some(([, name], index) => name !== this.slots[index][1])) return false;
    values.forEach(([, name, value], index) => {
      const [node] = this.slots[index];
      if (node.getAttribute(name) !== value) node.setAttribute(name, value);
    });
    this.source = source;
    return true;
  }
}

export class Drawing {
  constructor() {
    this.svg = null;
    this.parts = [];
  }

  // Takes the source of a drawing; gives the nodes that are new and those that moved, or null where it is none.
  show(source) {
    const [frame, ...lines] = source.trim().split(/\n(?=<)/);
    if (lines.pop() !== "</svg>" || !FRAME.test(frame)) return null;
    const before = new Map();
    for (const part of this.parts) {
      if (!before.has(part.shape)) before.set(part.shape, []);
      before.get(part.shape).push(part);
    }
    const moved = [];
    const parts = lines.map((line) => {
      const part = before.get(shape(line))?.shift();
      if (!part) return null;
      if (part.source === line) return part;
      if (!part.move(line)) {
        part.node.remove();
        return null;
      }
      moved.push(part.node);
      return part;
    });
    const places = parts.flatMap((part, index) => (part ? [] : [index]));
    const made = read([frame, ...places.map((index) => lines[index]), "</svg>"].join("\n"));
    if (!made || made.childElementCount !== places.length) return null;
    const fresh = [...made.children];
    fresh.forEach((node, index) => (parts[places[index]] = new Part(lines[places[index]], node)));
    for (const part of [...before.values()].flat()) part.node.remove();
    this.svg ??= made.cloneNode(false);
    let at = this.svg.firstElementChild;
    for (const { node } of parts) {
      if (node === at) at = at.nextElementSibling;
      else this.svg.insertBefore(node, at);
    }
    this.parts = parts;
    return { fresh, moved };
  }
}
