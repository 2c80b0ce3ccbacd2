import { defineConfig } from 'vite';

/** Build of the console page: `npm run build` writes it to `dist/console/`. */
export default defineConfig({
  root: import.meta.dirname,
  base: '/console/',
  // Scripts and styles use relative URLs: the gateway may be below a base path.
  experimental: {
    renderBuiltUrl: (_file, { hostType }) => (hostType === 'html' ? undefined : { relative: true }),
  },
  logLevel: 'warn',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: '../../../dist/console',
    emptyOutDir: true,
    target: 'es2022',
    // The polyfill would be inline code.
    modulePreload: { polyfill: false },
    // Images inlined into a style would not be files.
    assetsInlineLimit: 0,
  },
});
