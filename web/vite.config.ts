import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// Names without hashes: dist is committed, and a rebuild has to give the same files.
const output = {
  entryFileNames: "assets/[name].js",
  chunkFileNames: "assets/[name].js",
  assetFileNames: "assets/[name][extname]",
};

export default defineConfig({
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
  server: { proxy: { "/api": "http://127.0.0.1:8080" } },
});
