// Before anything is drawn, so that nothing flashes. Storage may be forbidden for local files.
try {
  const kept = localStorage.getItem("taynode-theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
} catch (error) {}
