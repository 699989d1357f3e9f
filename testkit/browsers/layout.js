// Finds controls and words that overlap, are cut or too small; evaluated in the page.
// Beneath an open panel (a menu, a dialog) an element is either fully covered or fully visible.

() => {
  const SLACK = 1.5;
  const LEAST = 44;
  /** Longer names of car and driver may end in dots. */
  const NAME = 12;
  const CONTROLS = 'button, a[href], input, select, textarea, summary, .stick';
  const faults = [];
  for (const moving of document.getAnimations()) {
    if (moving.effect.getComputedTiming().endTime < Infinity) moving.finish();
  }

  const shown = (element) => element.checkVisibility({opacityProperty: true, visibilityProperty: true});
  const intersect = (a, b) => ({
    left: Math.max(a.left, b.left), top: Math.max(a.top, b.top),
    right: Math.min(a.right, b.right), bottom: Math.min(a.bottom, b.bottom),
  });
  const empty = (box) => box.right - box.left <= SLACK || box.bottom - box.top <= SLACK;
  const area = (box) => (empty(box) ? 0 : (box.right - box.left) * (box.bottom - box.top));
  const screen = {left: 0, top: 0, right: innerWidth, bottom: innerHeight};

  /** Return the part of a box that is visible within its scrolling and clipping ancestors. */
  const clipped = (box, first) => {
    let seen = box;
    for (let up = first; up; up = up.parentElement) {
      if (getComputedStyle(up).overflow !== 'visible') seen = intersect(seen, up.getBoundingClientRect());
    }
    return seen;
  };
  const plain = ({left, top, right, bottom}) => ({left, top, right, bottom});
  const name = (element, text = '') =>
    (element.id ? `#${element.id}` : element.className?.baseVal ?? `${element.tagName.toLowerCase()}.${element.className}`) +
    (text ? ` "${text.slice(0, 30)}"` : '');

  const things = [];
  for (const element of document.body.querySelectorAll(CONTROLS)) {
    if (!shown(element)) continue;
    const whole = plain(element.getBoundingClientRect());
    const seen = clipped(whole, element.parentElement);
    if (!empty(seen)) things.push({element, whole, seen, what: name(element), control: true});
  }
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode;
    const element = text.parentElement;
    if (!text.data.trim() || !shown(element) || element.closest('.unseen, script, noscript, option')) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    const whole = plain(range.getBoundingClientRect());
    const seen = clipped(whole, element);
    if (!empty(seen)) things.push({element, whole, seen, what: name(element, text.data.trim()), control: false});
  }

  const panelOf = (thing) => thing.element.closest('.dialog, .drawer');
  const within = (a, b) => a.element.contains(b.element) || b.element.contains(a.element);
  const isStop = (thing) => thing.element.closest('#stop') !== null;

  for (const [index, a] of things.entries()) {
    for (const b of things.slice(index + 1)) {
      if (within(a, b)) continue;
      const apart = panelOf(a) !== panelOf(b);
      if (apart && !isStop(a) && !isStop(b)) continue;
      if (!empty(intersect(a.seen, b.seen))) faults.push(`${a.what} lies over ${b.what}`);
    }
  }
  for (const panel of document.querySelectorAll('.dialog, .drawer')) {
    if (!shown(panel)) continue;
    const box = plain(panel.getBoundingClientRect());
    if (area(intersect(box, screen)) < area(box) - 4) faults.push(`${name(panel)} leaves the screen`);
    for (const thing of things) {
      if (panel.contains(thing.element)) continue;
      const over = area(intersect(box, thing.seen));
      if (over > 4 && (isStop(thing) || over < area(thing.seen) - 4)) {
        faults.push(`${name(panel)} half covers ${thing.what}`);
      }
    }
  }
  for (const {element, whole, seen, what, control} of things) {
    const scrolls = element.closest('.panel') !== null;
    if (!scrolls && area(intersect(whole, screen)) < area(whole) - 4) faults.push(`${what} leaves the screen`);
    const shortened = element.closest('.names') && element.textContent.length > NAME;
    if (!scrolls && area(seen) < area(whole) - 4 && !shortened) faults.push(`${what} is cut`);
    if (control && !element.matches('.stick') && !element.closest('.check') &&
      (whole.right - whole.left < LEAST || whole.bottom - whole.top < LEAST)) {
      faults.push(`${what} is ${Math.round(whole.right - whole.left)}x${Math.round(whole.bottom - whole.top)} px, expected ${LEAST} at least`);
    }
  }
  /** Room for the arrow of a list. */
  const ARROW = 16;
  const RIM = 4;
  const pen = document.createElement('canvas').getContext('2d');
  for (const {element, whole, what, control} of things) {
    if (element.matches('select')) {
      const style = getComputedStyle(element);
      pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
      const room = element.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - ARROW;
      const choice = element.selectedOptions[0]?.text ?? '';
      if (pen.measureText(choice).width > room) faults.push(`${what} "${choice}" is cut by its arrow`);
    }
    const button = element.closest('button:not(#stop, #gear, .tabs *), a.button');
    const box = (button ?? element.closest('.people li'))?.getBoundingClientRect();
    if (!box || control) continue;
    const gap = button ? Math.min(whole.left - box.left, box.right - whole.right)
      : Math.min(whole.top - box.top, box.bottom - whole.bottom);
    if (gap < RIM) faults.push(`${what} is ${gap.toFixed(1)} px from a rim or line, expected ${RIM} at least`);
  }
  return [...new Set(faults)];
}
