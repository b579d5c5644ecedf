// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig, type Plugin } from "vite";

const FIRST_VIEW = "/views/Build.svelte";

/** Lets the browser fetch the first view with the page, rather than once the page's script has run. */
function firstView(): Plugin {
  return {
    name: "first-view",
    transformIndexHtml: {
      order: "post",
      handler(_html, { bundle }) {
        const chunks = Object.values(bundle ?? {}).flatMap((one) => (one.type === "chunk" ? [one] : []));
        const first = chunks.find((one) => one.facadeModuleId?.endsWith(FIRST_VIEW));
        if (!first) throw new Error(`no chunk of ${FIRST_VIEW}`);
        const entry = chunks.find((one) => one.isEntry);
        const scripts = [first.fileName, ...first.imports].filter((name) => name !== entry?.fileName);
        const styles = [...(first.viteMetadata?.importedCss ?? [])];
        return [
          ...scripts.map((name) => ({ tag: "link", injectTo: "head" as const, attrs: { rel: "modulepreload", href: `./${name}`, crossorigin: true } })),
          ...styles.map((name) => ({ tag: "link", injectTo: "head" as const, attrs: { rel: "stylesheet", href: `./${name}`, crossorigin: true } })),
        ];
      },
    },
  };
}

export default defineConfig({
  plugins: [svelte(), firstView()],
  base: "./",
  build: {
    outDir: "../python/airpath/ui/static",
    emptyOutDir: true,
    target: "es2022",
    // The page's policy forbids styles and scripts in the page's text.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
