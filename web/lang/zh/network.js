/** Chinese: the page about the car's Wi-Fi. */

import {register} from '../words.js';

export default register({
  network: {
    seat: '开车',
    title: 'Wi-Fi',
    pageTitle: '{car}：Wi-Fi',
    unlockHint: '输入大人的密码，更改小车的 Wi-Fi。',
    code: '大人的密码',
    unlock: '解锁',
    near: '小车附近的网络',
    look: '再找找',
    own: '小车自己的网络',
    ownHint: '找不到认识的网络时，小车会打开这个。现在把图拍下来：手机相机扫它就能加入。',
    ownName: '网络',
    key: '密钥',
    address: '小车地址',
    qr: '手机用来加入小车网络的图',
    cancel: '取消',
    join: '加入',

    asking: '正在询问小车……',
    silent: '小车没有应答。它可能换了网络：请加入那个网络，或小车自己的网络。',
    // Where the car is.
    phases: {
      absent: '小车没有 Wi-Fi。',
      searching: '小车在找认识的网络。半分钟后会打开自己的。',
      known: '小车在网络 {ssid} 里。',
      opening: '小车正在打开自己的网络 {own}。',
      own: '小车在自己的网络 {own} 里。',
      joining: '小车正在加入 {ssid}。请让本设备也加入，然后打开 {address}。如果不行，网络 {own} 约 {seconds} 秒后恢复：到时本页会说明原因。',
      failed: '小车不在任何网络里。半分钟后再试。',
    },
    notJoined: '没能加入 {ssid}：{why}。',
    unheard: '还没有找到网络。',
    heard: '上次搜索：{ago}。',
    deaf: '小车自己的网络打开时，它无法搜索。',
    nothing: '附近没有网络。让小车靠近一个，再找找。',
    strong: '强', good: '好', weak: '弱',
    security: {open: '没有密钥', other: '需要用户名：小车用不了'},
    joinTitle: '加入 {ssid}',
    joinHint: '小车会离开现在的网络，本页会和它断开。',
    openHint: '加入它不需要密钥：附近的人都能观看，也能试密码。',
  },
});
