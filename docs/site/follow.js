// On a wide screen the source beside a chapter follows the excerpt that is being read: the last one above the middle of the page.
(() => {
  const wide = matchMedia("(min-width: 100em)");
  let shown = null;

  const follow = () => {
    const panel = document.querySelector(".sources");
    if (!panel || !wide.matches) return;
    const links = [...document.querySelectorAll(".md-content a.source[data-line]")].filter((link) => !panel.contains(link));
    const above = links.filter((link) => link.getBoundingClientRect().top < innerHeight / 2);
    const link = above.at(-1) ?? links[0];
    if (!link || link === shown) return;
    shown = link;
    show(panel, link);
  };

  const show = (panel, link) => {
    const { file, line } = link.dataset;
    const excerpt = link.closest("p")?.nextElementSibling;
    const lines = excerpt?.matches(".highlight") ? excerpt.textContent.trimEnd().split("\n").length : 1;
    panel.querySelectorAll(".read").forEach((element) => element.classList.remove("read"));
    const read = Array.from({ length: lines }, (_, i) => document.getElementById(`${file}-${+line + i}`)).filter(Boolean);
    read.forEach((element) => element.classList.add("read"));
    const details = document.getElementById(file);
    if (details) details.open = true;
    const first = read[0] ?? details;
    if (first) panel.scrollTop += first.getBoundingClientRect().top - panel.getBoundingClientRect().top - panel.clientHeight / 4;
  };

  addEventListener("scroll", () => requestAnimationFrame(follow), { passive: true });
  wide.addEventListener("change", follow);
  addEventListener("load", follow);
})();

// The theme's button that copies a block of code stands in a landmark of its own, without a name; a screen reader would list them all.
addEventListener("load", () => document.querySelectorAll(".md-code__nav").forEach((nav) => nav.setAttribute("role", "none")));
