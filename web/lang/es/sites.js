/** Spanish: the switches of the office Wi-Fi. */

import {register} from '../words.js';

export default register({
  sites: {
    seat: 'Asiento del conductor', elsewhere: 'Esto es un coche. Los interruptores de los sitios están en la pasarela.',
    title: 'Sitios web',
    asking: 'Consultando…',
    password: 'Contraseña',
    unlock: 'Desbloquear',
    until: 'Hasta',
    undo: 'Deshacer: {change}',
    off: 'Desactivado: todos los dispositivos acceden a todos los sitios',
    inForce: 'En vigor',
    notYet: 'Aún no está en vigor',
    locked: 'Hace falta la contraseña para cambiar los permisos.',
    silent: 'La puerta de enlace no responde.',
    modeUntil: '{mode} hasta las {time}',
    turn: '{name}: {mode} hasta la hora de arriba',
    modes: {everything: 'Todos los sitios', sites: 'Sitios permitidos', nothing: 'Ningún sitio'},
  },
});
