import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig, loadEnv } from "vite";

// Names without hashes: dist is committed, and a rebuild has to give the same files.
const output = {
  entryFileNames: "assets/[name].js",
  chunkFileNames: "assets/[name].js",
  assetFileNames: "assets/[name][extname]",
};

export default defineConfig(({ mode }) => ({
  base: "./", // the page is also published as static files, in any folder
  plugins: [svelte()],
  build: {
    target: "es2022",
    sourcemap: false,
    modulePreload: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rolldownOptions: { input: { app: "index.html" }, output },
  },
  worker: { format: "es", rolldownOptions: { output } },
  // npm run dev needs the token that volley-lab explore has printed, as VOLLEY_TOKEN.
  server: { proxy: { "/api": { target: "http://127.0.0.1:8080", rewrite: (path) => `${path}?token=${loadEnv(mode, ".", "VOLLEY_").VOLLEY_TOKEN}` } } },
}));
