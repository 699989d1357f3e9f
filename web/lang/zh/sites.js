/** Chinese: the switches of the office Wi-Fi. */

import {register} from '../words.js';

export default register({
  sites: {
    seat: '驾驶座', elsewhere: '这是小车。网站开关在网关上。',
    title: '网站',
    asking: '正在查询……',
    password: '密码',
    unlock: '解锁',
    until: '截止时间',
    undo: '撤销：{change}',
    off: '已关闭：所有设备都能访问所有网站',
    inForce: '已生效',
    notYet: '尚未生效',
    locked: '需要密码才能切换。',
    silent: '网关没有响应。',
    modeUntil: '{mode}，到 {time} 为止',
    turn: '{name}：{mode}，到上方时间为止',
    modes: {everything: '所有网站', sites: '允许的网站', nothing: '禁止访问'},
  },
});
