/** What an operator should know about a Redis that keeps money, read from its INFO: one sentence per risk. */
export function adviseOn(info: string): readonly string[] {
  const facts = new Map(
    info.split(/\r?\n/).map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)] as const),
  );
  const advice: string[] = [];
  const policy = facts.get('maxmemory_policy') ?? 'noeviction';
  if (policy !== 'noeviction' && facts.get('maxmemory') !== '0') {
    advice.push(
      `maxmemory-policy is ${policy}: Redis may drop keys and balances when it is full; set it to noeviction`,
    );
  }
  if (facts.get('aof_enabled') === '0') {
    advice.push(
      'appendonly is off: a crash of Redis loses every charge and key since its last snapshot; set it to yes',
    );
  }
  return advice;
}
