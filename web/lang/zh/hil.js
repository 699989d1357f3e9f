/** Chinese: the page of fpvcar hil. */

import {register} from '../words.js';

export default register({
  hil: {
    seat: '驾驶座',
    title: '画面延迟',
    waiting: '正在等待小车运行“fpvcar hil --browser”。',
    measuring: '摄像头前的 LED 会闪烁，本页面把每次闪烁报告给小车。请让本页面保持在前台。',
  },
});
