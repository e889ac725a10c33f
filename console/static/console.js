// What pages do beyond htmx: copy buttons, menus that close when the focus leaves them, parts that are kept up to date.
"use strict";

for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const text = button.closest("article").querySelector("pre").textContent;
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}

for (const menu of document.querySelectorAll("details.menu")) {
  menu.addEventListener("focusout", (event) => {
    if (!menu.contains(event.relatedTarget)) menu.open = false;
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { menu.open = false; menu.querySelector("summary").focus(); }
  });
}

for (const part of document.querySelectorAll("[data-live]")) {
  const status = part.nextElementSibling.querySelector("[role=status]");
  const again = part.nextElementSibling.querySelector("a");
  let source = null;
  const say = (text, isLive) => {
    again.hidden = isLive;
    if (status.textContent !== text) status.textContent = text;
  };
  const stop = () => { source?.close(); source = null; };
  const show = (content) => {
    const focused = part.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
    part.innerHTML = content;
    if (focused) part.querySelector(`[aria-label="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  };
  const follow = () => {
    stop();
    source = new EventSource(part.dataset.live);
    source.addEventListener("open", () => say("Kept up to date", true));
    source.addEventListener("message", (event) => show(event.data));
    source.addEventListener("end", () => { stop(); say("No longer kept up to date.", false); });
    source.addEventListener("error", () => {
      const isOver = source?.readyState === EventSource.CLOSED;
      say(isOver ? "Not kept up to date." : "The server does not answer; trying again.", false);
    });
  };
  // a browser has few connections to one server: tabs that nobody sees give theirs back
  document.addEventListener("visibilitychange", () => (document.hidden ? stop() : follow()));
  if (!document.hidden) follow();
}
