// SPDX-License-Identifier: Apache-2.0
'use strict';
// The report itself is as it is in a file. When the log has grown it is loaded anew, unseen, gets what the person had
// opened, searched and scrolled to, and takes the place of the old one. A row is known by its kind and its number among
// those of the kind: a log only grows at its end.
(() => {
  const said = document.querySelector('output');
  let shown = null, whole = false, size = -1;

  function rowsOf(doc) {
    const counts = {}, rows = new Map();
    for (const row of doc.querySelectorAll('.e')) {
      const kind = row.classList[1];
      counts[kind] = (counts[kind] ?? 0) + 1;
      rows.set(kind + counts[kind], row);
    }
    return rows;
  }

  const inputsOf = (doc) => new Map(Array.from(doc.querySelectorAll('input'), (input) => [input.type === 'search' ? 'search' : input.value,
    input]));

  // The first row that is in sight, and where.
  function anchorOf(rows) {
    for (const [key, row] of rows) {
      const box = row.getBoundingClientRect();
      if (box.height && box.bottom > 0)
        return {key, top: box.top};
    }
    return null;
  }

  function takeOver(from, to) {
    const before = rowsOf(from.contentDocument), after = rowsOf(to.contentDocument);
    const anchor = from.contentWindow.scrollY > 0 ? anchorOf(before) : null;
    const old = inputsOf(from.contentDocument), search = inputsOf(to.contentDocument).get('search');
    for (const [key, input] of inputsOf(to.contentDocument))
      if (old.has(key)) {
        input.value = old.get(key).value;
        input.checked = old.get(key).checked;
      }
    to.contentDocument.forms[0].dispatchEvent(new to.contentWindow.Event('change'));
    for (const [key, row] of after)
      if ('open' in row && before.has(key))
        row.open = before.get(key).open;
    if (anchor && after.has(anchor.key))
      to.contentWindow.scrollBy(0, after.get(anchor.key).getBoundingClientRect().top - anchor.top);
    if (from.contentDocument.activeElement === old.get('search')) {
      to.contentWindow.focus();
      search.focus();
      search.setSelectionRange(old.get('search').selectionStart, old.get('search').selectionEnd);
    }
  }

  function renew() {
    return new Promise((done) => {
      const next = document.createElement('iframe');
      next.className = shown ? 'next' : '';
      next.addEventListener('load', () => {
        // What could not be made is a text that says why, or nothing: it takes the place of no report.
        const good = next.contentDocument?.forms.length === 1;
        if (good || !whole) {
          if (whole)
            takeOver(shown, next);
          shown?.remove();
          next.className = '';
          shown = next;
          whole = good;
        } else {
          next.remove();
        }
        done(good);
      });
      next.src = 'page';
      document.body.append(next);
    });
  }

  async function look() {
    let state;
    try {
      const answer = await fetch('state', {cache: 'no-store'});
      state = await answer.json();
    } catch {
      said.value = 'not live any more';
      return;
    }
    if (state.error) {
      said.value = state.error;
      return;
    }
    if (state.size !== size)
      size = await renew() ? state.size : -1;
    said.value = state.ended === null ? 'live' : 'ended: ' + state.ended;
    if (state.ended === null || size < 0)
      setTimeout(look, 1000);
  }

  look();
})();
