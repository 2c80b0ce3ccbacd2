import { computed, effect, signal } from '@preact/signals';
import { type ComponentType, render } from 'preact';
import { useEffect } from 'preact/hooks';
import { findSession, isLost, session, signOut } from './api.ts';
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
import { Targets } from './pages/targets.tsx';
import { Usage } from './pages/usage.tsx';
import { linkTo, route } from './routing.ts';
import './style.css';
import { Button, PageHead } from './ui.tsx';

const PAGES: Readonly<Record<string, { readonly title: string; readonly Page: ComponentType }>> = Object.freeze({
  home: { title: 'Home', Page: Home },
  calls: { title: 'Calls', Page: Calls },
  keys: { title: 'Keys and people', Page: Keys },
  usage: { title: 'Usage', Page: Usage },
  budgets: { title: 'Budgets', Page: Budgets },
  targets: { title: 'Targets', Page: Targets },
  models: { title: 'Models', Page: Models },
  playground: { title: 'Playground', Page: Playground },
  plugins: { title: 'Plugins', Page: Plugins },
  configuration: { title: 'Configuration', Page: Configuration },
  audit: { title: 'Audit', Page: Audit },
});

type Scheme = 'auto' | 'light' | 'dark';
const SCHEMES: readonly Scheme[] = ['auto', 'light', 'dark'];
const KEPT = 'tollgate-scheme';
const scheme = signal<Scheme>(SCHEMES.find((each) => each === localStorage.getItem(KEPT)) ?? 'auto');
effect(() => {
  document.documentElement.dataset['scheme'] = scheme.value;
  localStorage.setItem(KEPT, scheme.value);
});

const shown = computed(() => PAGES[route.value.page]);

function Nav() {
  return (
    <nav aria-label="Pages">
      <ul>
        {Object.entries(PAGES).map(([name, { title }]) => (
          <li key={name}>
            <a href={linkTo(name)} aria-current={route.value.page === name ? 'page' : undefined}>
              {title}
            </a>
          </li>
        ))}
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

function App() {
  const Page = shown.value?.Page ?? Unknown;
  const name = route.value.page;
  // A new page is read from its heading on.
  useEffect(() => document.querySelector<HTMLElement>('h1')?.focus({ preventScroll: true }), [name]);
  if (session.value === undefined) return <main class="alone muted">Loading …</main>;
  if (session.value === null) return <SignIn />;
  const { user, version } = session.value;
  return (
    <div class="frame">
      <aside>
        <button type="button" class="skip" onClick={() => document.querySelector<HTMLElement>('h1')?.focus()}>
          Skip to the page
        </button>
        <a class="brand" href={linkTo('home')}>
          <span aria-hidden="true" class="mark" />
          Tollgate
        </a>
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
            <a href="/docs">API</a> {version}
          </p>
        </footer>
      </aside>
      <main>
        <Page key={name} />
        {isLost.value && <SignInAgain />}
      </main>
    </div>
  );
}

const root = document.getElementById('app');
if (root) render(<App />, root);
void findSession();
