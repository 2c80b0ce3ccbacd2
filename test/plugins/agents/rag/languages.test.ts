import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { toQueryWords } from '../../../../plugins/agents/rag/terms.ts';
import { openTestIndex, type TestIndex } from '../../../support/agents/rag-index.ts';
import { useTempFolder } from '../../../support/folders.ts';
import {
  type AbsentWord,
  type DrawnTexts,
  type MeasuredQuery,
  meanOf,
  measureAbsent,
  measureDrawn,
  measureRag,
  openJudgedIndex,
  type RagLanguage,
} from '../../../support/pages/measure-rag.ts';
import { withRagFigures } from '../../../support/pages/rag-page.ts';

type Floor = Readonly<Record<RagLanguage, number>>;

/** Minimum quality of the search: nDCG@10 on the two parts of `test/fixtures/rag`. */
const FLOORS: Readonly<Record<'made' | 'held', Floor>> = Object.freeze({
  made: { en: 0.93, de: 0.93, fr: 0.97, zh: 0.94, ja: 0.9 },
  held: { en: 0.97, de: 0.88, fr: 0.99, zh: 0.99, ja: 0.97 },
});

describe('search by words in several languages', () => {
  const folder = useTempFolder('rag-languages');
  let measured: readonly MeasuredQuery[];
  let absent: readonly AbsentWord[];
  let drawn: DrawnTexts;
  let documents: readonly string[];
  let index: TestIndex;
  before(async () => {
    measured = await measureRag(path.join(folder, 'judged'));
    const judged = await openJudgedIndex(path.join(folder, 'absent'));
    absent = measureAbsent(judged);
    drawn = measureDrawn(judged);
    documents = Array.from({ length: judged.reader.count() }, (_, at) => {
      const { title, text } = judged.reader.passage(at + 1) ?? { title: '', text: '' };
      return `${title} ${text}`.toLowerCase();
    });
    judged.close();
    index = await openTestIndex(path.join(folder, 'single'));
  });
  after(() => index.close());

  for (const [part, floors] of Object.entries(FLOORS))
    for (const [language, floor] of Object.entries(floors))
      it(`D30 ranks the judged documents in ${language} as well as ${floor}, and no worse than words alone (${part})`, () => {
        const own = measured.filter((one) => one.language === language && one.isHeld === (part === 'held'));
        expect(own.length).to.be.at.least(10);
        expect(meanOf(own, 'now')).to.be.at.least(floor).and.at.least(meanOf(own, 'before'));
      });

  for (const isHeld of [false, true])
    it(`finds nothing for 98 of 100 words of five languages that stand nowhere, ${isHeld ? 'which it was not' : 'which it was'} made with (E23)`, () => {
      const own = absent.filter((one) => one.isHeld === isHeld);
      expect(documents).to.have.length(100);
      for (const { word } of own)
        expect(
          documents.filter((text) => text.includes(word.toLowerCase())),
          word,
        ).to.deep.equal([]);
      const finding = own.filter(({ found }) => found.length > 0);
      expect(new Set(own.map(({ language, word }) => `${language} ${word}`)).size).to.equal(250);
      expect(finding.length, finding.map(({ word }) => word).join(' ')).to.be.at.most(5);
      for (const { word, found } of finding) expect(found[0]?.score, word).to.be.below(1);
    });

  for (const kind of ['words', 'questions'] as const)
    it(`G54: finds nothing for 98 of 100 ${kind} that were drawn from lists of others and stand nowhere`, () => {
      const texts = drawn[kind];
      expect(texts).to.have.length(kind === 'words' ? 500 : 100);
      for (const word of texts.flatMap((text) => text.split(' ')))
        expect(
          documents.filter((text) => text.includes(word.toLowerCase())),
          word,
        ).to.deep.equal([]);
      const finding = texts.filter((text) => drawn.finding.includes(text));
      expect(finding.length, finding.join(', ')).to.be.at.most(texts.length / 50);
    });

  const UNLIKE: readonly (readonly [text: string, query: string])[] = [
    ['La facture arrive.', 'picture'],
    ['The others may wait.', 'mother'],
    ['Read these articles.', 'particle'],
    ['une attestation', 'gestation'],
    ['It ends in November.', 'member'],
    ['一か月以内に登録したい', 'せたい'],
  ];
  for (const [text, query] of UNLIKE)
    it(`G54: does not find "${text}" for "${query}", which only shares letters with it`, async () => {
      index.write({ 'text.txt': text, 'other.txt': 'zzz' });
      await index.update();
      expect(index.sources(query)).to.deep.equal([]);
    });

  const KIN: readonly (readonly [text: string, query: string])[] = [
    ['Kündigung der Wohnung', 'gekündigt'],
    ['Die Gesundheitskarte', 'Karte'],
    ['a voluntary payment', 'involuntary'],
    ['les salariés', 'salarier'],
  ];
  for (const [text, query] of KIN)
    it(`G54: still finds "${text}" for "${query}"`, async () => {
      index.write({ 'text.txt': text, 'other.txt': 'zzz' });
      await index.update();
      expect(index.sources(query)).to.deep.equal(['text.txt']);
    });

  it('has the figures of docs/plugins/rag.md, which npm run rag writes', () => {
    const page = readFileSync(new URL('../../../../docs/plugins/rag.md', import.meta.url), 'utf8');
    const figures = (text: string) => (text.match(/\b[01]\.\d{3}\b/g) ?? []).map(Number);
    const now = figures(withRagFigures(page, measured, absent, drawn));
    expect(figures(page)).to.have.length(now.length).and.above(20);
    // Node's dictionaries of Chinese and Japanese differ slightly between releases.
    for (const [at, figure] of figures(page).entries()) expect(figure).to.be.closeTo(now[at] ?? 0, 0.03);
  });

  const FOUND: readonly (readonly [what: string, text: string, query: string])[] = [
    ['a German compound by a word in its middle', 'Der Krankenversicherungsbeitrag steigt.', 'Versicherung'],
    ['a German compound by its last word', 'Der Krankenversicherungsbeitrag steigt.', 'Beiträge'],
    ['a German word by a compound that holds it', 'Die Versicherung zahlt.', 'Krankenversicherungsbeitrag'],
    ['a German compound by an inflected word', 'Mietvertragskündigungen', 'Vertrag kündigen'],
    ['a Dutch compound', 'De ziektekostenverzekering', 'verzekering'],
    ['a Finnish case', 'Helsingissä asuu paljon ihmisiä', 'Helsingistä'],
    ['a French plural', 'les cotisations', 'cotiser'],
    ['a Russian case', 'страховые взносы', 'страхового'],
    ['Korean with a particle, by the word', '학교에서 배웁니다', '학교'],
    ['a Korean word, by one with a particle', '도서관 이용 시간', '도서관에서'],
    ['a Korean compound', '건강보험료', '보험'],
    ['a single Chinese character within a question', '猫须登记。', '养猫要登记吗'],
    ['Chinese words that the text has apart', '请病假超过三天', '请假'],
    ['a Japanese word of one character before a particle', '猫の登録', '猫はどうしますか'],
    ['Katakana with a long vowel', 'クレジットカードの紛失', 'カード'],
    ['Thai', 'ประกันสุขภาพสำหรับพนักงาน', 'สุขภาพ'],
    ['letters with accents, by those without', 'Überweisungsgebühren', 'gebuhren'],
  ];
  for (const [what, text, query] of FOUND)
    it(`D30 finds ${what}`, async () => {
      index.write({ 'text.txt': text, 'other.txt': 'zzz' });
      await index.update();
      expect(index.sources(query)).to.deep.equal(['text.txt']);
    });

  it('bounds the words and parts of a query', () => {
    const long = Array.from({ length: 300 }, (_, at) => `wordnumber${at}`).join(' ');
    const words = toQueryWords(long);
    expect(words).to.have.length(64);
    expect(words.flatMap(({ parts }) => parts)).to.have.length(128);
  });
});
