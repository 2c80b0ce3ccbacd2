/** Types of the parts of marked 4 in use; the package has none. */
declare module 'marked' {
  export class Renderer {
    code(code: string, language: string | undefined): string;
    heading(html: string, level: number, raw: string): string;
    html(html: string): string;
    image(href: string, title: string | null, text: string): string;
    link(href: string, title: string | null, html: string): string;
    table(head: string, body: string): string;
    tablecell(html: string, flags: { readonly header: boolean }): string;
  }
  export function parse(
    text: string,
    options: { readonly renderer: Renderer; readonly mangle: false; readonly headerIds: false },
  ): string;
}
