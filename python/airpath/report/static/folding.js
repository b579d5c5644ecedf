// Sections are folded on the screen and whole in print; a link into a folded part opens it.
(() => {
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details.part:not([open])")];
    for (const part of opened) part.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const part of opened) part.open = false;
    opened = [];
  });

  // The target may be a row that is filtered away, too.
  const reveal = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    target.hidden = false;
    const own = target.querySelector(":scope > details.part");
    if (own) own.open = true;
    for (let part = target.closest("details"); part; part = part.parentElement.closest("details")) {
      part.open = true;
    }
    target.scrollIntoView();
  };
  window.addEventListener("hashchange", reveal);
  // A second click on the same link changes no address.
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.('a[href^="#"]');
    if (link && link.hash === location.hash) reveal();
  });
  window.addEventListener("DOMContentLoaded", reveal);
})();
