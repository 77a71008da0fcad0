// A page that is dark on the screen is printed black on white.
(() => {
  const root = document.documentElement;
  let before;
  addEventListener("beforeprint", () => { before = root.dataset.theme; root.dataset.theme = "light"; });
  addEventListener("afterprint", () => { root.dataset.theme = before; });
})();
