import { computed, effect, signal } from '@preact/signals';
import { type ComponentType, render } from 'preact';
import { useEffect } from 'preact/hooks';
import { findSession, hrefOf, isLost, may, minutesAhead, session, signOut } from './api.ts';
import { Agents } from './pages/agents.tsx';
import { Audit } from './pages/audit.tsx';
import { Budgets } from './pages/budgets.tsx';
import { Calls } from './pages/calls.tsx';
import { Configuration } from './pages/configuration.tsx';
import { Home } from './pages/home.tsx';
import { Keys } from './pages/keys.tsx';
import { Models } from './pages/models.tsx';
import { Playground } from './pages/playground.tsx';
import { Plugins } from './pages/plugins.tsx';
import { SignIn, SignInAgain } from './pages/sign-in.tsx';
import { Speech } from './pages/speech.tsx';
import { Targets } from './pages/targets.tsx';
import { Teams } from './pages/teams.tsx';
import { Usage } from './pages/usage.tsx';
import { linkTo, route } from './routing.ts';
import './style.css';
import { Button, PageHead } from './ui.tsx';

interface PageRow {
  readonly title: string;
  readonly Page: ComponentType;
  /** Scopes of which one is required to show it. */
  readonly needs?: readonly string[];
}

const PAGES: Readonly<Record<string, PageRow>> = Object.freeze({
  home: { title: 'Home', Page: Home },
  calls: { title: 'Calls', Page: Calls, needs: ['calls:read'] },
  keys: { title: 'API keys', Page: Keys, needs: ['keys:read'] },
  teams: { title: 'Teams', Page: Teams, needs: ['teams:read', 'teams:own'] },
  usage: { title: 'Usage', Page: Usage, needs: ['usage:read'] },
  budgets: { title: 'Budgets', Page: Budgets, needs: ['budgets:read'] },
  targets: { title: 'Targets', Page: Targets, needs: ['targets:read'] },
  models: { title: 'Models', Page: Models, needs: ['models:read'] },
  playground: { title: 'Playground', Page: Playground, needs: ['models:call'] },
  speech: { title: 'Speech', Page: Speech, needs: ['models:call'] },
  agents: { title: 'Agents', Page: Agents, needs: ['models:call'] },
  plugins: { title: 'Plugins', Page: Plugins, needs: ['config:read'] },
  configuration: { title: 'Configuration', Page: Configuration, needs: ['config:read'] },
  audit: { title: 'Audit', Page: Audit, needs: ['audit:read'] },
});

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

function Nav() {
  return (
    <nav aria-label="Pages">
      <ul>
        {Object.entries(PAGES).map(
          ([name, { title, needs }]) =>
            mayOneOf(needs) && (
              <li key={name}>
                <a href={linkTo(name)} aria-current={route.value.page === name ? 'page' : undefined}>
                  {title}
                </a>
              </li>
            ),
        )}
      </ul>
    </nav>
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
        <a href={linkTo('home')}>Go home</a>
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

function App() {
  const Page = shown.value?.Page ?? Unknown;
  const name = route.value.page;
  // Move the focus to the heading of a new page.
  useEffect(() => document.querySelector<HTMLElement>('h1')?.focus({ preventScroll: true }), [name]);
  if (session.value === undefined) return <main class="alone muted">Loading …</main>;
  if (session.value === null) return <SignIn />;
  const { user, version } = session.value;
  const needs = shown.value?.needs;
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
          <p title="Who is signed in; calls of the playground are booked under this name">{user}</p>
          <div class="actions">
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
        {mayOneOf(needs) ? <Page key={name} /> : <NotYours needs={needs} />}
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
      The clock of this computer is {Math.abs(ahead)} min {ahead > 0 ? 'ahead of' : 'behind'} that of the gateway: times
      such as “tried again in” are off by as much. What the gateway counts and books goes by its own clock.
    </p>
  );
}

const root = document.getElementById('app');
if (root) render(<App />, root);
void findSession();
