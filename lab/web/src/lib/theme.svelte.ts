export const themes = ["system", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

const key = "volley-theme";
/** Where dark.css holds. */
const media: Record<Theme, string> = { system: "screen and (prefers-color-scheme: dark)", light: "not all", dark: "screen" };

class ThemeStore {
  value: Theme = $state("system");

  constructor() {
    this.set(themes.find((t) => t === stored()) ?? "system");
  }

  set(theme: Theme): void {
    this.value = theme;
    document.querySelector<HTMLLinkElement>("#dark")!.media = media[theme];
    try {
      localStorage.setItem(key, theme);
    } catch {
      // private windows may have no storage: the theme then lasts as long as the page
    }
  }
}

function stored(): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

export const theme = new ThemeStore();
