/** Chinese: the children’s page. */

import {register} from '../words.js';

export default register({
  buttons: {
    title: '按钮',
    heading: '{car} 的按钮',
    button: '{colour}{shape}',
    colours: {red: '红色', yellow: '黄色', green: '绿色', blue: '蓝色', purple: '紫色', white: '白色'},
    shapes: {circle: '圆形', triangle: '三角形', square: '方形', star: '星形', heart: '心形', diamond: '菱形'},
    modes: {show: '看好了：小车正在演示顺序', turn: '轮到你了：照着顺序按', cheer: '答对了！', sad: '按错了，游戏结束', rainbow: '彩虹'},
    rainbow: '彩虹',
    game: '记忆游戏：照着顺序按',
    sound: '声音',
    seat: '家长专用：按住一秒进入驾驶座',
    lost: '与小车的连接已断开，正在重连',
    stars: '{length} 个中完成 {done} 个',
    starsBest: '{length} 个中完成 {done} 个，最好成绩 {best}',
  },
});
