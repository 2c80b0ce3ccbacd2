/** Problem of a configuration before its position in the file is resolved. */
export interface ProblemAt {
  /** A JSON pointer into the configuration. */
  readonly pointer: string;
  /** True if the key itself is wrong (an unknown name) rather than its value. */
  readonly atKey?: boolean;
  readonly message: string;
  readonly hint?: string | undefined;
}

/** Returns the pointer of a child: `/server` and `port` give `/server/port`. */
export function childPointer(pointer: string, key: string | number): string {
  return `${pointer}/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** The keys of a pointer: `/a~1b/0` gives `a/b` and `0`. */
export function pointerKeys(pointer: string): readonly string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** A pointer as people write paths: `plans.free.providers.openai`, `models.smart[0]`, `providers["a b"]`. */
export function formatPath(pointer: string): string {
  let path = '';
  for (const key of pointerKeys(pointer)) {
    if (/^(0|[1-9]\d*)$/.test(key)) path += `[${key}]`;
    else if (/^[\w$-]+$/.test(key)) path += path === '' ? key : `.${key}`;
    else path += `[${JSON.stringify(key.slice(0, 60))}]`;
  }
  return path;
}
