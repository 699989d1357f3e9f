/** Chinese: the questions of a card image's first boot. */

import {register} from '../words.js';

export default register({
  start: {
    seat: '驾驶座', elsewhere: '这辆小车已经启动过了。',
    title: '小车首次启动',
    asking: '正在等待小车响应……',
    three: '三个问题',
    answered: '问题已回答，小车正在启动。',
    starts: '小车正在启动',
    silent: '小车没有响应。这台设备连上它的 Wi-Fi 了吗？',
    board: '主板：选最接近小车接线的配置',
    name: '名字：字母（A–Z）、数字和连字符；它会成为“名字.local”',
    country: '国家或地区：决定 Wi-Fi 信道',
    resistors: '接线图中的电阻已焊入电机引线',
    go: '启动小车',
    once: '请记下来，小车只显示一次',
    drive: '驾驶密码',
    grownUp: '家长密码',
    key: '小车自己的 Wi-Fi 密码',
    keyFile: '在存储卡的 fpvcar-wifi-key.txt 里',
    soon: '小车会在一分钟内启动。',
    byName: '它的地址',
    byAddress: '在它自己的 Wi-Fi 里',
    home: '在那里，用菜单里的“小车的 Wi-Fi”连接家里的 Wi-Fi。',
  },
});
