/** What calls may be booked under beside their user: `name=value`, from the list of the configuration (`tags:`). */

/** The values that each name may have; `*` takes any. */
export type TagRules = Readonly<Record<string, readonly string[] | '*'>>;

/** The most tags that a call carries, those of its key included. */
export const MAX_TAGS = 5;

/** What a name may be: short, for it stands in reports and rules. */
export const TAG_NAME = /^[a-z][a-z0-9_-]{0,31}$/;

/** What a value may be: no comma, which stands between tags, and nothing that is not printed. */
export const TAG_VALUE = /^[A-Za-z0-9](?:[A-Za-z0-9 ._:/@+-]{0,62}[A-Za-z0-9._:/@+-])?$/;

/** The tag's name: what stands before the first `=`; the whole where there is none. */
export function tagName(tag: string): string {
  const at = tag.indexOf('=');
  return at === -1 ? tag : tag.slice(0, at);
}

/** Why a tag is not allowed and which are, as a whole sentence; undefined for one that is. */
export function refuseTag(tag: string, rules: TagRules): string | undefined {
  const name = tagName(tag);
  const value = tag.slice(name.length + 1);
  if (name === tag || name === '') return `${quote(tag)} is no tag: write name=value, such as team=search.`;
  const allowed = Object.hasOwn(rules, name) ? rules[name] : undefined;
  const names = Object.keys(rules);
  if (allowed === undefined)
    return names.length === 0
      ? 'No tags are allowed here: an operator lists them under "tags" in the configuration.'
      : `There is no tag ${quote(name)} here; tags are: ${listed(names)}.`;
  if (allowed === '*')
    return TAG_VALUE.test(value)
      ? undefined
      : `${quote(value)} cannot be the value of the tag "${name}": use 1 to 64 letters, digits, spaces and . _ : / @ + -, and begin with a letter or digit.`;
  return allowed.includes(value)
    ? undefined
    : `${quote(value)} is no value of the tag "${name}"; its values are: ${listed(allowed)}.`;
}

/** How many names an error lists, and how much it shows of what was sent. */
const MAX_LISTED = 20;
const MAX_SHOWN = 80;

function listed(names: readonly string[]): string {
  const more = names.length - MAX_LISTED;
  return names.slice(0, MAX_LISTED).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

function quote(text: string): string {
  return JSON.stringify(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN - 1)}…` : text);
}
