/** Chinese: the page about trust. */

import {register} from '../words.js';

export default register({
  trust: {
    seat: '回小车',
    title: '信任这辆小车',
    first: '1. 获取证书',
    why: '小车自己为自己作保：有了它的证书，浏览器就认得它，不再警告。',
    vouches: '它为这些作保：名称以 .local 结尾的网页、家庭网络里的地址（10.x、172.16.x 至 172.31.x、192.168.x、169.254.x）、本机（localhost、127.x），以及小车自己的名称和地址。它不为其他网站作保，也不为电子邮件作保。偷走小车存储卡的人可以冒充其中任何一个，比如你的路由器页面：如果存储卡丢了，请删除证书。',
    download: '获取证书',
    name: '名称',
    fingerprint: 'SHA-256',
    second: '2. 安装证书',
    undo: '想收回的话，在同一个地方删除证书。',
    third: '3. 检查是否成功',
    check: '检查',
    open: '用 https 打开小车',

    asking: '正在询问小车……',
    silent: '小车没有应答。这台设备在小车的网络里吗？在的话请重新加载本页。',
    needless: '这里小车只对本机开放，没有 https：不需要信任什么。',
    looking: '正在查看……',
    trusted: '成功了：这个浏览器信任小车。（如果你最近让浏览器不管警告继续访问，也会这样显示。）',
    strange: '还没有：这个浏览器不信任小车。请照上面的步骤做，关闭浏览器，重新打开本页再看一次。',
    secure: '本页是通过 https 打开的。如果浏览器没有警告，它就信任小车；想看仔细些，请打开 {address}。',

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
