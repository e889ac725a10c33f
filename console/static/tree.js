// The tree of objects as the WAI-ARIA pattern has it: the lists of links become a tree with one stop of the Tab key,
// whose branches are loaded when they are opened for the first time. What is open is kept by the browser.
"use strict";

const KEPT = "lakewarden-tree";
const MOST_OPEN = 20;

const remembered = () => {
  try { return JSON.parse(localStorage.getItem(KEPT)) || []; } catch { return []; }
};

function remember(id, isOpen) {
  const ids = remembered().filter((each) => each !== id);
  if (isOpen) ids.push(id);
  try { localStorage.setItem(KEPT, JSON.stringify(ids.slice(-MOST_OPEN))); } catch { /* no storage: nothing is kept */ }
}

const group = (item) => item.closest("li").querySelector(":scope > ul");
const above = (item) => item.closest("li").parentElement.closest("li")?.querySelector(":scope > .leaf");
const isOpen = (item) => item.getAttribute("aria-expanded") === "true";
const shown = (tree) => [...tree.querySelectorAll(".leaf")].filter((each) => !each.closest("ul[hidden]"));

// Give the links below `root` their roles; called again for each part that was loaded.
function dress(tree, root) {
  tree.setAttribute("role", "tree");
  for (const list of root.querySelectorAll("ul")) list.setAttribute("role", "group");
  for (const line of root.querySelectorAll("li")) line.setAttribute("role", "none");
  for (const text of root.querySelectorAll(".nothing")) text.setAttribute("role", "treeitem");
  for (const item of root.querySelectorAll(".leaf")) {
    item.setAttribute("role", "treeitem");
    item.tabIndex = -1;
    if (item.pathname === location.pathname && !item.search) item.setAttribute("aria-current", "page");
    const inside = group(item);
    if (!inside) continue;
    item.setAttribute("aria-expanded", String(!inside.hidden));
    inside.setAttribute("aria-label", item.textContent.trim());
    const toggle = item.parentElement.querySelector(":scope > .toggle");
    toggle.setAttribute("aria-hidden", "true");
    toggle.tabIndex = -1;
  }
  if (!tree.querySelector('.leaf[tabindex="0"]')) {
    const first = tree.querySelector(".leaf[aria-current]") || tree.querySelector(".leaf");
    if (first) first.tabIndex = 0;
  }
}

function focus(tree, item) {
  if (!item) return;
  for (const each of tree.querySelectorAll('.leaf[tabindex="0"]')) each.tabIndex = -1;
  item.tabIndex = 0;
  item.focus();
}

function open(item, wanted) {
  const inside = group(item);
  if (!inside) return;
  inside.hidden = !wanted;
  item.setAttribute("aria-expanded", String(wanted));
  remember(inside.dataset.of, wanted);
  if (wanted && !inside.querySelector(".leaf")) htmx.trigger(item.parentElement.querySelector(":scope > .toggle"), "expand");
}

function find(items, at, letter) {
  const turned = [...items.slice(at + 1), ...items.slice(0, at + 1)];
  return turned.find((each) => each.textContent.trim().toLowerCase().startsWith(letter.toLowerCase()));
}

function moved(tree, item, key) {
  const items = shown(tree);
  const at = items.indexOf(item);
  switch (key) {
    case "ArrowDown": return items[at + 1];
    case "ArrowUp": return items[at - 1];
    case "Home": return items[0];
    case "End": return items[items.length - 1];
    case "ArrowRight":
      if (!group(item)) return null;
      if (isOpen(item)) return group(item).querySelector(".leaf");
      open(item, true);
      return item;
    case "ArrowLeft":
      if (!group(item) || !isOpen(item)) return above(item);
      open(item, false);
      return item;
    default: return key.length === 1 && key !== " " ? find(items, at, key) : null;
  }
}

document.addEventListener("keydown", (event) => {
  const item = event.target.closest(".tree .leaf");
  if (!item || event.ctrlKey || event.metaKey || event.altKey) return;
  const tree = item.closest(".tree");
  const to = moved(tree, item, event.key);
  if (to) focus(tree, to);
  if (to || event.key.startsWith("Arrow")) event.preventDefault();
});

document.addEventListener("click", (event) => {
  const toggle = event.target.closest(".tree .toggle");
  if (!toggle) return;
  event.preventDefault();
  const item = toggle.parentElement.querySelector(":scope > .leaf");
  open(item, !isOpen(item));
});

document.addEventListener("htmx:configRequest", (event) => {
  if (!event.target.matches(".branches")) return;
  const way = event.target.dataset.way.split(",").filter(Boolean);
  event.detail.parameters.open = [...remembered().filter((each) => !way.includes(each)), ...way].slice(-MOST_OPEN).join(",");
});

// The link that asked for more gives its place, and the focus, to the first of what came.
let asked = null;
document.addEventListener("htmx:beforeSwap", (event) => {
  const line = event.detail.target.closest(".tree li");
  asked = line?.querySelector(":scope > .more") === document.activeElement ? line?.previousElementSibling : null;
});

document.addEventListener("htmx:afterSettle", (event) => {
  const tree = event.target.closest(".tree") || event.target.querySelector(".tree");
  if (!tree || event.target.getAttribute("role") === "none") return; // its sibling came first
  dress(tree, tree);
  if (asked) focus(tree, asked.nextElementSibling.querySelector(".leaf"));
  asked = null;
});

for (const kind of ["htmx:responseError", "htmx:sendError"]) {
  document.addEventListener(kind, (event) => {
    const place = event.detail.target;
    if (place.matches(".tree ul, .branches")) place.innerHTML = '<li class="quiet nothing" role="treeitem">This cannot be shown now</li>';
  });
}

for (const tree of document.querySelectorAll(".tree")) dress(tree, tree);
