/** Sentences in the project's comments, to measure their style. */
import { readSources } from './source-tree.ts';

export interface CommentSentence {
  readonly file: string;
  readonly line: number;
  readonly text: string;
}

/** First words that make a sentence a relative clause in place of a noun or a verb. */
const CLAUSE_WORDS = '(?:What|How|Whether|Where|Who|Whom|Whose|Which|One|Of|That|So|Each of|All that|Those|Nobody)';
/** "The thing that …" hides a relative clause behind a word without meaning. */
const HOLLOW_START = /^(?:The|A|An) (?:thing|one|ones|part|place|way|fact|case)s? (?:that|which|who|where)\b/;
const STARTS_AS_CLAUSE = new RegExp(`^${CLAUSE_WORDS}\\b`);

export function isRelativeClause({ text }: CommentSentence): boolean {
  return STARTS_AS_CLAUSE.test(text) || HOLLOW_START.test(text);
}

/** All sentences in the comments of these folders; a comment may span several lines. */
export function readCommentSentences(...folders: readonly string[]): readonly CommentSentence[] {
  return readSources(...folders).flatMap(({ name, text }) =>
    readComments(text).flatMap(({ line, text: comment }) =>
      splitSentences(comment).map((sentence) => ({ file: name, line, text: sentence })),
    ),
  );
}

interface Comment {
  readonly line: number;
  readonly text: string;
}

/** Block comments, and adjacent lines of `//` as one comment. Sufficient for our own formatting. */
export function readComments(text: string): readonly Comment[] {
  const pattern = /\/\*\*?([\s\S]*?)\*\/|(?:^[ \t]*\/\/ .*(?:\n|$))+|(?<=\s)\/\/ .*$/gm;
  return [...text.matchAll(pattern)].map((match) => ({
    line: text.slice(0, match.index).split('\n').length,
    text: match[0]
      .replaceAll(/^[ \t]*(?:\/\*\*?|\*\/|\*|\/\/)[ \t]?/gm, '')
      .replace(/\*\/\s*$/, '')
      .replaceAll(/\s+/g, ' ')
      .trim(),
  }));
}

function splitSentences(text: string): readonly string[] {
  return text
    .split(/(?<=[.!?:])\s+(?=[A-Z`@])/)
    .map((sentence) => sentence.replace(/^@\w+ (?:\w+ )?(?:- )?/, '').trim())
    .filter((sentence) => /^[A-Z]/.test(sentence) && sentence.includes(' '));
}
