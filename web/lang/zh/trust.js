/** Chinese: the page about trust. */

import {register} from '../words.js';

export default register({
  trust: {
    seat: '驾驶座',
    title: '信任这辆小车',
    first: '1. 获取证书',
    why: '有了小车的证书，浏览器就能识别小车，不再警告。',
    vouches: '证书适用于名称以 .local 结尾的网页、家庭网络里的地址（10.x、172.16.x 至 172.31.x、192.168.x、169.254.x）、本机（localhost、127.x），以及小车自己的名称和地址。它不适用于其他网站，也不适用于电子邮件。偷走小车存储卡的人可以冒充其中任何一个，比如你的路由器页面。如果存储卡丢了，请删除证书。',
    download: '获取证书',
    name: '名称',
    fingerprint: 'SHA-256',
    second: '2. 安装证书',
    undo: '如需撤销，请在同一个地方删除证书。',
    third: '3. 检查是否成功',
    check: '检查',
    open: '用 https 打开小车',

    asking: '正在等待小车响应……',
    silent: '小车没有响应。请检查本设备是否在小车的网络里，然后重新加载本页。',
    needless: '这里只有本机能打开小车，没有使用 https，不需要证书。',
    looking: '正在检查……',
    trusted: '成功：这个浏览器信任小车。（如果你最近在警告后选择了继续访问，也会显示这个结果。）',
    strange: '还没有：这个浏览器不信任小车。请按上面的步骤操作，重启浏览器，再打开本页检查一次。',
    secure: '本页是通过 https 打开的。如果浏览器没有警告，它就信任小车。如需确认，请打开 {address}。',

    // How each system is told.
    get: '获取证书。',
    ios: {
      get: '在 Safari 里打开本页，获取证书，点“允许”。',
      install: '设置、通用、VPN 与设备管理：点证书，安装。',
      trust: '设置、通用、关于本机、证书信任设置：打开它。',
    },
    android: {
      install: '设置、安全和隐私、更多安全设置、加密与凭据、安装证书、CA 证书、仍然安装：选择文件。（如果你的设置顺序不同，搜索“CA 证书”。）',
      firefox: '仅 Firefox：设置、关于 Firefox，点标志五次；然后设置、Secret Settings、使用第三方 CA 证书。',
    },
    windows: {
      get: '获取证书，打开文件。',
      install: '安装证书、当前用户、将所有的证书都放入下列存储、浏览：受信任的根证书颁发机构。',
      finish: '完成，对警告回答“是”。',
    },
    macos: {
      get: '获取证书，打开文件：“钥匙串访问”会把它加到“登录”。',
      trust: '在“钥匙串访问”里打开它，信任、“使用此证书时”：始终信任。',
      close: '关闭窗口，输入密码。',
    },
    linux: {
      chrome: 'Chrome、Chromium：设置、隐私和安全、安全、管理证书、授权机构（或“自定义”、“由您安装”）、导入：信任它用于网站。',
      firefox: 'Firefox：设置、隐私与安全、查看证书、证书颁发机构、导入：信任它来标识网站。',
    },
  },
});
