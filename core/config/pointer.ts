/** JSON pointers (RFC 6901) name places in the configuration; people see them as `providers.openai.models[0]`. */

/** The pointer of a child: `/server` and `port` give `/server/port`. */
export function childPointer(pointer: string, key: string | number): string {
  return `${pointer}/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

export function pointerKeys(pointer: string): readonly string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** `/a/b`’s parent is `/a`; the root has none. */
export function parentPointer(pointer: string): string | undefined {
  const slash = pointer.lastIndexOf('/');
  return slash === -1 ? undefined : pointer.slice(0, slash);
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
