/**
 * Whether a sign is denied where it is found. Made to err on the side of the sign: only a denial that stands right before
 * it (but for a few harmless words), a list of denials, or a "no" right after it counts. All texts are plain (`plainText`).
 */
export function isNegated(before: string, after: string): boolean {
  const near = before.slice(-160);
  const clause =
    near.split(/[.;!?\n:]|\b(?:but|however|although|aber|sondern|jedoch|mais|cependant|pero|sino)\b/).at(-1) ?? '';
  if (DIRECT.test(clause)) return true;
  if (LAST_OF_LIST.test(clause)) return true;
  if (IN_LIST.test(clause) && LIST_GOES_ON.test(after.slice(0, 120))) return true;
  return DENIED_AFTER.test(after.slice(0, 60));
}

/** Words of denial in the four languages. "not" alone is none: "not sure about this chest pain". */
const NO = [
  'no|without|denies|denied|denying|never had|negative for|free of|absence of|neither|nor|not (?:have|having|had|experiencing|any|a|feeling)',
  "(?:do|does|did|have|has|had|am|is|are|was)(?:n't| not)(?: (?:have|had|having|feel|feeling|felt|got|experience|experienced|experiencing|notice|noticed|want|wanted|intend|plan|planning|going|thinking|about|to|been))*",
  "(?:i'm|he's|she's|they're|we're|it's) not(?: (?:feeling|having|going to|thinking about|thinking of|at all))*",
  "(?:would|will) never|won't|wouldn't|never (?:wanted|thought|tried)(?: to| about| of)?",
  'kein|keine|keinen|keiner|keinerlei|ohne|weder|noch|nie|verneint|frei von',
  "pas (?:de|d'|la|le|du)|sans|aucune?|ni|jamais(?: de| d')?|jamais (?:eu|pense|voulu)(?: de| a| d')?|nie (?:toute|des?)|n'ai pas(?: de| d')?|n'a pas(?: de| d')?",
  'sin|ningun|ninguna|niega|nunca|no (?:tengo|tiene|hay|siento|siente|he tenido|quiero|pienso)(?: en| de)?',
].join('|');

/** What may stand between a denial and the sign without changing it. */
const FILLER =
  '(?:any|a|an|the|my|severe|serious|significant|acute|new|sudden|real|more|further|obvious|known|such|signs? of|symptoms? of|complaints? of|evidence of|history of|feeling of|thoughts? (?:of|about)|intention (?:of|to)|plans? (?:of|to)|starken?|akuten?|anzeichen (?:von|fur|einer)|zeichen (?:von|einer)|gedanken an|de|des|la|le|du|signes? de|symptomes? de|pensees? de|dolor ni|el|los|las|signos? de|sintomas? de|ideas? de|pensamientos? de)';

const JOIN = '(?:or|nor|and|oder|und|noch|ou|et|ni|o|u|y)';
const ITEM = "[\\w'-]+(?: [\\w'-]+){0,3}";

const DIRECT = new RegExp(`(?:^|[\\s,(])(?:${NO})\\s+(?:${FILLER}\\s+){0,3}$`);
const LAST_OF_LIST = new RegExp(
  `(?:^|[\\s,(])(?:${NO})\\s+${ITEM}(?:,\\s*${ITEM}){0,6},?\\s+${JOIN}\\s+(?:${FILLER}\\s+){0,2}$`,
);
const IN_LIST = new RegExp(`(?:^|[\\s,(])(?:${NO})\\s+${ITEM}(?:,\\s*${ITEM}){0,6},\\s*(?:${FILLER}\\s+){0,2}$`);
const LIST_GOES_ON = new RegExp(`^(?:,\\s*${ITEM}){0,6},?\\s+${JOIN}\\s+\\w`);
const DENIED_AFTER =
  /^\s*(?:[:=?-]|\()?\s*(?:no|none|nein|keine|non|aucune?|(?:is |are |was )?(?:negative|absent|denied)|(?:habe|hat|hab) (?:ich|er|sie|es) (?:nicht|keine)|nicht vorhanden)\s*(?:$|[,.;)\n])/;
