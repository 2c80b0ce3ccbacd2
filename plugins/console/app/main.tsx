import { computed, effect, signal } from '@preact/signals';
import { type ComponentType, render } from 'preact';
import { useEffect } from 'preact/hooks';
import { findSession, hrefOf, installation, isLost, may, minutesAhead, session, signOut } from './api.ts';
import { isUtc, zone } from './format.ts';
import { type ICONS, Icon } from './icon.tsx';
import { Accounts } from './pages/accounts.tsx';
import { Agents } from './pages/agents.tsx';
import { Audit } from './pages/audit.tsx';
import { Budgets } from './pages/budgets.tsx';
import { Calls } from './pages/calls.tsx';
import { Changes } from './pages/changes.tsx';
import { Configuration } from './pages/configuration.tsx';
import { Drafts } from './pages/drafts.tsx';
import { Home } from './pages/home.tsx';
import { Keys } from './pages/keys.tsx';
import { McpServers } from './pages/mcp.tsx';
import { Models } from './pages/models.tsx';
import { Playground } from './pages/playground.tsx';
import { Plugins } from './pages/plugins.tsx';
import { SignIn, SignInAgain } from './pages/sign-in.tsx';
import { Speech } from './pages/speech.tsx';
import { Targets } from './pages/targets.tsx';
import { Teams } from './pages/teams.tsx';
import { Usage } from './pages/usage.tsx';
import { Users } from './pages/users.tsx';
import { linkTo, route } from './routing.ts';
import { SearchButton } from './search.tsx';
import './style.css';
import { Button, PageHead } from './ui.tsx';

interface PageRow {
  readonly title: string;
  readonly icon: keyof typeof ICONS;
  readonly Page: ComponentType;
  /** Scopes of which one is required to show it. */
  readonly needs?: readonly string[];
  /** Feature that has to be configured. */
  readonly feature?: string;
}

/** Pages in the groups of the navigation. */
const GROUPS: Readonly<Record<string, Readonly<Record<string, PageRow>>>> = Object.freeze({
  Activity: {
    home: { title: 'Overview', icon: 'home', Page: Home },
    calls: { title: 'Calls', icon: 'lines', Page: Calls, needs: ['calls:read'] },
    usage: { title: 'Usage', icon: 'bars', Page: Usage, needs: ['usage:read'] },
  },
  Access: {
    keys: { title: 'API keys', icon: 'key', Page: Keys, needs: ['keys:read'] },
    users: { title: 'Users', icon: 'person', Page: Users, needs: ['users:read'] },
    teams: { title: 'Teams', icon: 'people', Page: Teams, needs: ['teams:read', 'teams:own'] },
    accounts: { title: 'Accounts', icon: 'card', Page: Accounts, needs: ['accounts:read'] },
    budgets: { title: 'Budgets', icon: 'coin', Page: Budgets, needs: ['budgets:read'] },
  },
  Models: {
    models: { title: 'Models', icon: 'cube', Page: Models, needs: ['models:read'] },
    targets: { title: 'Targets', icon: 'target', Page: Targets, needs: ['targets:read'] },
    playground: { title: 'Playground', icon: 'chat', Page: Playground, needs: ['models:call'] },
    speech: { title: 'Speech', icon: 'sound', Page: Speech, needs: ['models:call'], feature: 'speech' },
    agents: { title: 'Agents', icon: 'tree', Page: Agents, needs: ['models:call'], feature: 'agents' },
  },
  Gateway: {
    mcp: { title: 'MCP servers', icon: 'stack', Page: McpServers, needs: ['mcp:read'], feature: 'mcp' },
    changes: { title: 'Changes', icon: 'check', Page: Changes, feature: 'changes' },
    plugins: { title: 'Plugins', icon: 'plug', Page: Plugins, needs: ['config:read'] },
    configuration: { title: 'Configuration', icon: 'sliders', Page: Configuration, needs: ['config:read'] },
    drafts: { title: 'Drafts', icon: 'pencil', Page: Drafts, needs: ['config:read'] },
    audit: { title: 'Audit', icon: 'record', Page: Audit, needs: ['audit:read'] },
  },
});
const PAGES: Readonly<Record<string, PageRow>> = Object.freeze(Object.assign({}, ...Object.values(GROUPS)));

type Scheme = 'auto' | 'light' | 'dark';
const SCHEMES: readonly Scheme[] = ['auto', 'light', 'dark'];
const KEPT = 'tollgate-scheme';
const scheme = signal<Scheme>(SCHEMES.find((each) => each === localStorage.getItem(KEPT)) ?? 'auto');
effect(() => {
  document.documentElement.dataset['scheme'] = scheme.value;
  localStorage.setItem(KEPT, scheme.value);
});

/** On narrow screens the pages are behind a menu button. */
const isMenuOpen = signal(false);
effect(() => {
  if (route.value.page) isMenuOpen.value = false;
});

const shown = computed(() => PAGES[route.value.page]);

function mayOneOf(needs: readonly string[] | undefined): boolean {
  return needs === undefined || needs.some(may);
}

function isConfigured(feature: string | undefined): boolean {
  return feature === undefined || session.value?.features.includes(feature) === true;
}

/** True if the page is in the navigation of this session. */
function isShown({ needs, feature }: PageRow): boolean {
  return mayOneOf(needs) && isConfigured(feature);
}

function Nav() {
  return (
    <nav aria-label="Pages">
      {Object.entries(GROUPS).map(([group, pages]) => {
        const shown = Object.entries(pages).filter(([, page]) => isShown(page));
        if (shown.length === 0) return null;
        return (
          <div key={group}>
            <p aria-hidden="true">{group}</p>
            <ul aria-label={group}>
              {shown.map(([name, { title, icon }]) => (
                <li key={name}>
                  <a href={linkTo(name)} aria-current={route.value.page === name ? 'page' : undefined}>
                    <Icon shape={icon} />
                    {title}
                  </a>
                </li>
              ))}
            </ul>
          </div>
        );
      })}
    </nav>
  );
}

/** Zone of every time on every page. */
function ZoneSwitch() {
  const name = isUtc.value ? 'UTC' : `local time (${zone.value})`;
  const next = isUtc.value ? 'local time' : 'UTC';
  return (
    <Button
      kind="quiet"
      title={`Time zone: ${name}`}
      aria-label={`Time zone: ${name}. Switch to ${next}.`}
      onClick={() => {
        isUtc.value = !isUtc.value;
      }}
    >
      {isUtc.value ? 'UTC' : 'local time'}
    </Button>
  );
}

/** Name of the installation, and a line in its color. */
function Installation() {
  const { name, color } = installation.value;
  return (
    <>
      {color && <span class="stripe" ref={(element) => element?.style.setProperty('background', color)} />}
      {name && <span class="installation">{name}</span>}
    </>
  );
}

function SchemeSwitch() {
  const next = SCHEMES[(SCHEMES.indexOf(scheme.value) + 1) % SCHEMES.length] ?? 'auto';
  return (
    <Button
      kind="quiet"
      title={`Colours: ${scheme.value}`}
      aria-label={`Colours: ${scheme.value}. Switch to ${next}.`}
      onClick={() => {
        scheme.value = next;
      }}
    >
      {{ auto: '◐', light: '○', dark: '●' }[scheme.value]} {scheme.value}
    </Button>
  );
}

function Unknown() {
  return (
    <>
      <PageHead title="No such page" />
      <p>
        <a href={linkTo('home')}>Overview</a>
      </p>
    </>
  );
}

function NotYours({ needs = [] }: { needs: readonly string[] | undefined }) {
  return (
    <>
      <PageHead title="Not for this session" />
      <p>
        This page needs the scope <code>{needs.join(' or ')}</code>, which your session lacks. An admin can give you a
        role that has it.
      </p>
    </>
  );
}

function NotConfigured({ title }: { title: string }) {
  return (
    <>
      <PageHead title={title} />
      <p>
        This gateway has no {title.toLowerCase()} configured. <a href={hrefOf('/docs/config')}>All options</a>
      </p>
    </>
  );
}

/** Page of the address, or the reason why this session does not have it. */
function Shown() {
  const row = shown.value;
  if (!row) return <Unknown />;
  const { Page, title, needs, feature } = row;
  if (!mayOneOf(needs)) return <NotYours needs={needs} />;
  return isConfigured(feature) ? <Page key={route.value.page} /> : <NotConfigured title={title} />;
}

function App() {
  const name = route.value.page;
  // Move the focus to the heading of a new page.
  useEffect(() => document.querySelector<HTMLElement>('h1')?.focus({ preventScroll: true }), [name]);
  if (session.value === undefined) return <main class="alone muted">Loading …</main>;
  if (session.value === null) return <SignIn />;
  const { user, version } = session.value;
  return (
    <div class="frame">
      <aside class={isMenuOpen.value ? 'open' : ''}>
        <button type="button" class="skip" onClick={() => document.querySelector<HTMLElement>('h1')?.focus()}>
          Skip to the page
        </button>
        <a class="brand" href={linkTo('home')}>
          <span aria-hidden="true" class="mark" />
          Tollgate
        </a>
        <Installation />
        <SearchButton
          pages={Object.entries(PAGES).flatMap(([page, row]) =>
            isShown(row) ? [{ name: page, title: row.title }] : [],
          )}
        />
        <button
          type="button"
          class="button plain menu"
          aria-expanded={isMenuOpen.value}
          onClick={() => {
            isMenuOpen.value = !isMenuOpen.value;
          }}
        >
          {isMenuOpen.value ? 'Close' : 'Menu'}
        </button>
        <Nav />
        <footer>
          <p title="Signed in. Calls of the playground are charged to this user.">{user}</p>
          <div class="actions">
            <ZoneSwitch />
            <SchemeSwitch />
            <Button kind="quiet" onClick={() => void signOut()}>
              Sign out
            </Button>
          </div>
          <p class="muted">
            <a href={hrefOf('/docs/pages')}>Docs</a> <a href={hrefOf('/docs')}>API</a> {version}
          </p>
        </footer>
      </aside>
      <main>
        <ClockNote />
        <Shown />
        {isLost.value && <SignInAgain />}
      </main>
    </div>
  );
}

/** Note that times are of this computer's clock. */
function ClockNote() {
  const ahead = minutesAhead.value;
  if (ahead === 0) return null;
  return (
    <p class="empty" role="status">
      The clock of this computer is {Math.abs(ahead)} min {ahead > 0 ? 'ahead of' : 'behind'} that of the gateway.
      Durations such as “next retry in” are off by as much. The gateway counts and charges by its own clock.
    </p>
  );
}

const root = document.getElementById('app');
if (root) render(<App />, root);
void findSession();
// A link to sign in that is opened in this tab changes only the fragment.
addEventListener('hashchange', () => {
  if (location.hash.startsWith('#sign-in=')) void findSession();
});
