// Runs before the first paint: puts the remembered theme on the page, so that nothing flashes.
{
  const THEMES = ["system", "light", "dark"];
  const KEY = "turnstile.theme";

  const remembered = () => {
    try {
      const theme = localStorage.getItem(KEY);
      return THEMES.includes(theme) ? theme : "system";
    } catch {
      return "system"; // storage may be switched off
    }
  };

  const put = (theme) => {
    document.documentElement.dataset.theme = theme;
    const button = document.getElementById("theme");
    if (button) {
      button.textContent = `Theme: ${theme}`;
      button.hidden = false;
    }
  };

  put(remembered());
  addEventListener("DOMContentLoaded", () => {
    put(remembered());
    document.getElementById("theme")?.addEventListener("click", () => {
      const theme = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
      try {
        localStorage.setItem(KEY, theme);
      } catch {
        // lasts for this page only
      }
      put(theme);
    });
  });
}
