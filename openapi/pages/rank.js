/**
 * Ranks sections of the docs for a phrase. A classic script without imports, so that a page opened as a file can load
 * it; tests import it too. Sets `docsSearch`.
 */
(() => {
  /** Stop words. A phrase with no other word is searched unchanged. */
  const SMALL = new Set(
    'a an and are as at be by can do does for from how i if in is it its my no not of on or out that the their there they this to up was what when where which who why with you'.split(
      ' ',
    ),
  );

  /** Synonyms: words that match each other. */
  const SAME = {
    vendor: ['provider'],
    vendors: ['provider'],
    sso: ['sign-in'],
    price: ['prices', 'cost'],
    postgresql: ['postgres'],
    backup: ['back up'],
    delete: ['erase', 'remove'],
    fail: ['error'],
    failed: ['error'],
  };

  const TITLE = 24;
  const HEADING = 8;
  const MOST_OF_TEXT = 3;
  const PHRASE = 10;
  /** Maximum sections of one page in a list. */
  const MOST_OF_PAGE = 3;

  function patternOf(words) {
    const any = words.map((word) => word.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|');
    // Matches the start of a word. Words that begin with a symbol, such as --json, match anywhere.
    return new RegExp(`${/^[\p{L}\p{N}]/u.test(words[0]) ? '(?<![\\p{L}\\p{N}])' : ''}(?:${any})`, 'gu');
  }

  function readWords(phrase) {
    const all = phrase.toLowerCase().split(/\s+/).filter(Boolean);
    const large = all.filter((word) => !SMALL.has(word));
    return (large.length > 0 ? large : all).map((word) => ({ word, pattern: patternOf([word, ...(SAME[word] ?? [])]) }));
  }

  /** Groups sections by page, with the compared text in lower case. */
  function prepare(sections) {
    const pages = new Map();
    for (const section of sections) {
      const page = pages.get(section.page) ?? { weight: section.weight, title: section.title.toLowerCase(), sections: [] };
      page.sections.push({
        section,
        heading: section.heading.toLowerCase(),
        low: `${section.heading} ${section.text}`.toLowerCase(),
      });
      pages.set(section.page, page);
    }
    return [...pages.values()];
  }

  const times = (text, pattern) => text.match(pattern)?.length ?? 0;

  /** Score of a section, with the words that it contains. */
  function scoreSection({ heading, low }, words, phrase) {
    let score = words.length > 1 && low.includes(phrase) ? PHRASE : 0;
    let found = 0;
    for (const { pattern } of words) {
      const count = times(low, pattern);
      if (count === 0) continue;
      found += 1;
      score += Math.min(count, MOST_OF_TEXT) + (times(heading, pattern) > 0 ? HEADING : 0);
    }
    // A section with all words comes before one with many matches of some.
    return { score: score * (found / words.length), found };
  }

  /**
   * Ranks sections for a phrase, best first, grouped by page. Pages without all words are listed only if no page has
   * all.
   */
  function rank(pages, phrase) {
    const low = phrase.trim().toLowerCase();
    const words = readWords(low);
    if (words.length === 0) return [];
    const scored = pages.map((page) => {
      const sections = page.sections
        .map((one) => ({ section: one.section, ...scoreSection(one, words, low) }))
        .filter(({ found }) => found > 0)
        .sort((a, b) => b.score - a.score);
      const inTitle = words.filter(({ pattern }) => times(page.title, pattern) > 0);
      const missing = words.filter(
        ({ pattern }) => times(page.title, pattern) === 0 && !page.sections.some((one) => times(one.low, pattern) > 0),
      );
      const score = (TITLE * inTitle.length + (sections[0]?.score ?? 0)) * page.weight;
      return { score, sections, missing: missing.length, page };
    });
    const fewest = Math.min(...scored.map(({ missing }) => missing));
    if (fewest === words.length) return [];
    return scored
      .filter(({ missing }) => missing === fewest)
      .sort((a, b) => b.score - a.score)
      .flatMap(({ sections, page }) =>
        (sections.length > 0 ? sections : [{ section: page.sections[0].section }])
          .slice(0, MOST_OF_PAGE)
          .map(({ section }) => section),
      );
  }

  globalThis.docsSearch = { prepare, rank, readWords };
})();
