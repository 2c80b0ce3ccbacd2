import { BadFile, type Parsed, type Section } from '../section.ts';

/** The most pages of one document. */
const MAX_PAGES = 2000;

/** PDF by pages, by unpdf (a build of pdf.js for servers, without canvas). Loaded when the first PDF is met. */
export async function parsePdf(bytes: Uint8Array): Promise<Parsed> {
  const { getDocumentProxy } = await import('unpdf');
  try {
    const document = await getDocumentProxy(bytes, { isEvalSupported: false, verbosity: 0 });
<<<<<<< HEAD
    if (document.numPages > MAX_PAGES)
      throw new BadFile(`a document of ${document.numPages} pages; at most ${MAX_PAGES} are read`);
    const { info } = await getMeta(document);
    const { text } = await extractText(document, { mergePages: false });
    // oxlint-disable-next-line typescript/no-unnecessary-condition -- documents without metadata have none
    const title = info?.['Title'];
    return {
      title: typeof title === 'string' && title.trim() !== '' ? title.trim() : undefined,
      sections: text.flatMap((page, at) =>
        page.trim() === '' ? [] : [{ text: page.trim(), location: { page: at + 1 } }],
      ),
    };
=======
    try {
      if (document.numPages > MAX_PAGES)
        throw new BadFile(`a document of ${document.numPages} pages; at most ${MAX_PAGES} are read`);
      const title = ((await document.getMetadata()).info as { readonly Title?: unknown }).Title;
      const sections: Section[] = [];
      for (let number = 1; number <= document.numPages; number += 1) {
        const page = await document.getPage(number);
        const { items } = await page.getTextContent();
        const text = items
          .map((item) => ('str' in item ? item.str + (item.hasEOL ? '\n' : '') : ''))
          .join('')
          .trim();
        if (text !== '') sections.push({ text, location: { page: number } });
        page.cleanup();
      }
      return { title: typeof title === 'string' && title.trim() !== '' ? title.trim() : undefined, sections };
    } finally {
      await document.destroy();
    }
>>>>>>> rag
  } catch (error) {
    if (error instanceof BadFile) throw error;
    throw new BadFile(
      `not a PDF that can be read: ${error instanceof Error ? error.message.slice(0, 200) : 'unreadable'}`,
    );
  }
}
