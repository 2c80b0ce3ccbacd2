import { may } from './api.ts';
import { usd } from './format.ts';
import { describeLimits, describeState, KeyState } from './key-state.tsx';
import { linkTo } from './routing.ts';
import type { Key } from './shapes.ts';
import { Badge, Button, type Column, Time, Usd } from './ui.tsx';

/** Columns, one line per key. */
export function keyColumns(edit: (key: Key) => void): readonly Column<Key>[] {
  return [
    {
      name: 'Key',
      value: ({ prefix }) => prefix,
      cell: (key) => (
        <div class="wrap">
          <code>{key.prefix}</code> <b>{key.name || 'unnamed'}</b>{' '}
          {[key.role ?? [], key.scopes ?? []].flat().map((right) => (
            <Badge key={right} tone="warn">
              {right}
            </Badge>
          ))}
        </div>
      ),
    },
    {
      name: 'User',
      value: ({ user_id }) => user_id,
      cell: ({ user_id }) => (
        <div class="wrap short">
          {may('users:read') ? <a href={linkTo('users', { id: user_id })}>{user_id}</a> : user_id}
        </div>
      ),
    },
    { name: 'State', value: describeState, cell: (key) => <KeyState item={key} /> },
    {
      name: 'Team or tag',
      isExtra: true,
      isWide: true,
      value: ({ tags }) => tags?.join(' '),
      cell: ({ tags }) => <div class="wrap short">{tags?.join(', ') ?? '–'}</div>,
    },
    {
      name: 'Limits',
      isExtra: true,
      value: describeLimits,
      cell: (key) => <div class="wrap">{describeLimits(key)}</div>,
    },
    {
      name: 'Spent',
      isNumber: true,
      value: ({ spent_usd }) => spent_usd,
      cell: ({ spent_usd, budget_usd }) => (
        <>
          <Usd of={spent_usd} /> {budget_usd && `of ${usd(budget_usd)}`}
        </>
      ),
    },
    {
      name: 'Last used',
      isExtra: true,
      value: ({ last_used_at }) => last_used_at,
      cell: ({ last_used_at }) => (last_used_at ? <Time at={last_used_at} /> : <span class="muted">never</span>),
    },
    {
      name: 'Actions',
      isQuiet: true,
      cell: (key) =>
        key.revoked_at === null &&
        may('keys:write') && (
          <Button kind="quiet" aria-label={`Edit ${key.prefix}`} onClick={() => edit(key)}>
            Edit
          </Button>
        ),
    },
  ];
}
