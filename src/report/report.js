// SPDX-License-Identifier: Apache-2.0
'use strict';
// Nothing here makes markup: rows are hidden and opened, and texts of our own are set.
(() => {
  const form = document.forms[0], search = form.querySelector('[type=search]'), said = form.querySelector('output');
  const rows = Array.from(document.querySelectorAll('.e')), sections = document.querySelectorAll('section');
  const texts = [], byUs = new Set();
  let at = -1;

  const textOf = (i) => texts[i] ?? (texts[i] = rows[i].textContent.toLowerCase());
  const kindOf = (row) => row.classList[1];

  function highlight(words, shown) {
    if (!window.Highlight || !CSS.highlights)
      return;
    const found = new Highlight();
    CSS.highlights.set('found', found);
    if (!words.length)
      return;
    for (const row of shown.slice(0, 100)) {
      const walker = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
      for (let node; (node = walker.nextNode()) && found.size < 2000;)
        for (const word of words)
          for (let i = -1; (i = node.data.toLowerCase().indexOf(word, i + 1)) >= 0 && found.size < 2000;) {
            if (i + word.length > node.length)
              break;
            const range = new Range();
            range.setStart(node, i);
            range.setEnd(node, i + word.length);
            found.add(range);
          }
    }
  }

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const kinds = new Set(Array.from(form.querySelectorAll('[type=checkbox]:checked'), (box) => box.value));
    const shown = [];
    for (const row of byUs)
      row.open = false;
    byUs.clear();
    rows.forEach((row, i) => {
      row.hidden = !kinds.has(kindOf(row)) || !words.every((word) => textOf(i).includes(word));
      if (!row.hidden)
        shown.push(row);
    });
    for (const section of sections)
      section.hidden = !section.querySelector(':scope > .e:not([hidden])');
    if (words.length && shown.length <= 50)
      for (const row of shown) {
        const head = row.firstElementChild.textContent.toLowerCase();
        if (row.open === false && !words.every((word) => head.includes(word))) {
          row.open = true;
          byUs.add(row);
        }
      }
    said.value = shown.length === rows.length ? '' : shown.length + ' of ' + rows.length;
    highlight(words, shown);
  }

  function next() {
    for (let n = 1; n <= rows.length; n++) {
      const i = (at + n) % rows.length;
      if (rows[i].classList.contains('bad') && !rows[i].hidden) {
        rows[at]?.classList.remove('at');
        at = i;
        rows[i].classList.add('at');
        rows[i].scrollIntoView({block: 'center'});
        return;
      }
    }
  }

  function openAll(on) {
    byUs.clear();
    for (const row of rows)
      if (!row.hidden && 'open' in row)
        row.open = on;
  }

  let timer;
  search.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(filter, 120);
  });
  form.addEventListener('change', filter);
  form.addEventListener('submit', (event) => event.preventDefault());
  form.elements.bad.addEventListener('click', next);
  form.elements.open.addEventListener('click', () => openAll(true));
  form.elements.close.addEventListener('click', () => openAll(false));
  addEventListener('keydown', (event) => {
    if (event.key === '/' && document.activeElement !== search) {
      event.preventDefault();
      search.focus();
    } else if (event.key === 'Escape' && document.activeElement === search) {
      search.value = '';
      filter();
    }
  });
  form.hidden = false;
  // The state of the agent itself is no news.
  if (form.querySelector('[value=o]'))
    filter();
})();
