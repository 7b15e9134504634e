// Builds the page into one file, built/page.html. It is embedded in the binary, and reports insert data, so it must load no other files.
import { defineConfig } from "vitest/config";
import type { Plugin } from "vite";

const placeholder = '<script type="application/json" id="drover-data"></script>';

// Puts scripts and styles into the HTML file.
function one_file(): Plugin {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_options, bundle) {
      const page = bundle["index.html"];
      if (page?.type !== "asset") throw new Error("index.html was not built");
      let html = String(page.source);
      for (const [name, part] of Object.entries(bundle)) {
        if (part === page) continue;
        const text = part.type === "chunk" ? part.code : String(part.source);
        const tag = new RegExp(`[ \\t]*<(script|link)[^>]*(src|href)="[^"]*${name}"[^>]*>(</script>)?\\n?`);
        if (!tag.test(html)) throw new Error(`${name} is not named by index.html`);
        html = html.replace(tag, () =>
          part.type === "chunk"
            ? `<script type="module">${text.replace(/<\/script/g, "<\\/script")}</script>\n`
            : `<style>${text}</style>\n`,
        );
        delete bundle[name];
      }
      if (html.split(placeholder).length !== 2)
        throw new Error("the page must have the element for a report's data exactly once");
      page.source = html;
      page.fileName = "page.html";
    },
  };
}

export default defineConfig({
  plugins: [one_file()],
  build: { outDir: "built", target: "es2021", modulePreload: false, assetsInlineLimit: 1 << 20, cssCodeSplit: false },
  test: { include: ["test/*.test.ts"] },
});
