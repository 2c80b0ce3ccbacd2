import { isObject } from '../contract/json.ts';
import { TAG_NAME, TAG_VALUE } from '../contract/tags.ts';
import { childPointer, type ProblemAt } from './problems.ts';

/** Names and values of tags that no request could send. */
export function checkTags(tags: unknown): readonly ProblemAt[] {
  if (!isObject(tags)) return [];
  return Object.entries(tags).flatMap(([name, values]): readonly ProblemAt[] => {
    const pointer = childPointer('/tags', name);
    if (!TAG_NAME.test(name))
      return [
        {
          ...{ pointer, atKey: true, message: 'is not a name that a tag can have' },
          hint: 'Use 1 to 32 of a-z, 0-9, "_" and "-", and begin with a letter.',
        },
      ];
    return (Array.isArray(values) ? values : []).flatMap((value, index) =>
      typeof value === 'string' && !TAG_VALUE.test(value)
        ? [
            {
              ...{ pointer: childPointer(pointer, String(index)), message: 'is not a value that a tag can have' },
              hint: 'Use 1 to 64 letters, digits, spaces and . _ : / @ + -, and begin with a letter or digit; a comma stands between tags. Write `name: "*"` to take any value.',
            },
          ]
        : [],
    );
  });
}
