/** Spanish: the questions of a card image's first boot. */

import {register} from '../words.js';

export default register({
  start: {
    seat: 'Asiento del conductor', elsewhere: 'Este coche ya está en marcha.',
    title: 'El primer arranque del coche',
    asking: 'Esperando al coche…',
    three: 'Tres preguntas',
    answered: 'Las preguntas están respondidas; el coche arranca.',
    starts: 'El coche arranca',
    silent: 'El coche no responde. ¿Está este dispositivo en su wifi?',
    board: 'Placa: el perfil más parecido al cableado del coche',
    name: 'Nombre: letras (A–Z), cifras y guiones; será NOMBRE.local',
    country: 'País: para los canales de la wifi',
    resistors: 'Las resistencias del dibujo están soldadas en los cables de los motores',
    go: 'Arrancar el coche',
    once: 'Apunta esto; el coche lo muestra una sola vez',
    drive: 'Código de conducción',
    grownUp: 'Código de adulto',
    key: 'Clave de su propia wifi',
    keyFile: 'en fpvcar-wifi-key.txt, en la tarjeta',
    soon: 'El coche arranca en menos de un minuto.',
    byName: 'Su dirección',
    byAddress: 'En su propia wifi',
    home: 'Allí, «Wifi del coche» en el menú lo conecta a la wifi de casa.',
  },
});
