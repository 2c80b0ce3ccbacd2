import { BadFile, type Parsed } from '../section.ts';

/** The most pages of one document. */
const MAX_PAGES = 2000;

/** PDF by pages, by unpdf (a build of pdf.js for servers, without canvas). Loaded when the first PDF is met. */
export async function parsePdf(bytes: Uint8Array): Promise<Parsed> {
  const { extractText, getDocumentProxy, getMeta } = await import('unpdf');
  try {
    const document = await getDocumentProxy(bytes, { isEvalSupported: false, verbosity: 0 });
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
  } catch (error) {
    if (error instanceof BadFile) throw error;
    throw new BadFile(
      `not a PDF that can be read: ${error instanceof Error ? error.message.slice(0, 200) : 'unreadable'}`,
    );
  }
}
