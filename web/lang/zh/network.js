/** Chinese: the page about the car's Wi-Fi. */

import {register} from '../words.js';

export default register({
  network: {
    seat: '驾驶座',
    title: 'Wi-Fi',
    pageTitle: '{car}：Wi-Fi',
    unlockHint: '输入家长密码，更改小车的 Wi-Fi。',
    code: '家长密码',
    unlock: '解锁',
    near: '小车附近的网络',
    look: '重新搜索',
    own: '小车自己的网络',
    ownHint: '附近没有已知网络时，小车会打开这个网络。请现在拍下二维码，扫描即可加入。',
    ownName: '网络',
    key: '密码',
    address: '小车地址',
    qr: '加入小车网络的二维码',
    cancel: '取消',
    join: '加入',

    asking: '正在等待小车响应……',
    silent: '小车没有响应。它可能换了网络：请加入那个网络，或小车自己的网络。',
    // Where the car is.
    phases: {
      absent: '小车没有 Wi-Fi。',
      searching: '小车正在搜索已知网络，半分钟后会打开自己的网络。',
      known: '小车已连接网络 {ssid}。',
      opening: '小车正在打开自己的网络 {own}。',
      own: '小车正在使用自己的网络 {own}。',
      joining: '小车正在加入 {ssid}。请让本设备也加入，然后打开 {address}。如果无法加入，网络 {own} 约 {seconds} 秒后恢复，本页会显示原因。',
      failed: '小车没有连接任何网络，半分钟后会重试。',
    },
    absent: '{why}。',
    notJoined: '小车无法加入 {ssid}：{why}。',
    unheard: '还没有找到网络。',
    heard: '上次搜索：{ago}。',
    deaf: '小车自己的网络打开时，它无法搜索。',
    nothing: '附近没有网络。请让小车靠近网络，再重新搜索。',
    strong: '强', good: '好', weak: '弱',
    security: {open: '开放，无密码', other: '需要用户名：不支持'},
    other: '其他网络',
    joinTitle: '加入 {ssid}',
    otherTitle: '加入其他网络',
    ssid: '网络名称',
    otherHint: '隐藏的网络不会出现在列表中：请准确输入名称；如果没有密码，请将密码留空。',
    joinHint: '小车会离开当前网络，本页会断开连接。',
    openHint: '这个网络没有密码：附近的任何人都能观看，也能尝试输入驾驶密码。',
  },
});
