/** Spanish: the page about the car's Wi-Fi. */

import {register} from '../words.js';

export default register({
  network: {
    seat: 'Asiento del conductor',
    title: 'Wifi',
    pageTitle: '{car}: wifi',
    unlockHint: 'Escribe el código de adulto para cambiar la wifi del coche.',
    code: 'Código de adulto',
    unlock: 'Desbloquear',
    near: 'Redes cerca del coche',
    look: 'Buscar otra vez',
    own: 'La red propia del coche',
    ownHint: 'El coche abre esta red cuando no hay ninguna conocida cerca. Haz una foto del código ahora: escanéalo para unirte a esta red.',
    ownName: 'Red',
    key: 'Clave',
    address: 'Dirección del coche',
    qr: 'Código QR para unirse a la red propia del coche',
    cancel: 'Cancelar',
    join: 'Unirse',

    asking: 'Esperando al coche…',
    silent: 'El coche no responde. Quizá esté ahora en otra red: únete a ella o a la del coche.',
    // Where the car is.
    phases: {
      absent: 'El coche no tiene wifi.',
      searching: 'El coche busca redes conocidas. Tras medio minuto abre la suya.',
      known: 'El coche está en la red {ssid}.',
      opening: 'El coche abre su propia red, {own}.',
      own: 'El coche está en su propia red, {own}.',
      joining: 'El coche se une a {ssid}. Únete también con este dispositivo y abre {address}. Si no funciona, la red {own} vuelve en unos {seconds} s, y esta página muestra el motivo.',
      failed: 'El coche no está en ninguna red. Lo intenta otra vez en medio minuto.',
    },
    absent: '{why}.',
    notJoined: 'El coche no pudo unirse a {ssid}: {why}.',
    unheard: 'Aún no se ha encontrado ninguna red.',
    heard: 'Última búsqueda: {ago}.',
    deaf: 'El coche no puede buscar mientras su propia red está abierta.',
    nothing: 'No hay redes cerca. Acerca el coche a una y busca otra vez.',
    strong: 'fuerte', good: 'buena', weak: 'débil',
    security: {open: 'sin clave', other: 'pide un nombre de usuario: no compatible'},
    other: 'Otra red',
    joinTitle: 'Unirse a {ssid}',
    otherTitle: 'Unirse a otra red',
    ssid: 'Nombre de la red',
    otherHint: 'Las redes ocultas no salen en la lista: escribe el nombre exacto y deja la clave vacía si la red no tiene.',
    joinHint: 'El coche deja su red actual y esta página pierde la conexión.',
    openHint: 'Esta red no tiene clave: cualquiera que esté cerca puede mirar y probar códigos.',
  },
});
