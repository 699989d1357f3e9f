/** Spanish: the page about trust. */

import {register} from '../words.js';

export default register({
  trust: {
    seat: 'Asiento del conductor',
    title: 'Confiar en este coche',
    first: '1. Obtén el certificado',
    why: 'Con el certificado del coche tu navegador lo reconoce y ya no avisa.',
    vouches: 'El certificado vale para nombres que terminan en .local, direcciones de redes domésticas (10.x, 172.16.x a 172.31.x, 192.168.x, 169.254.x), este mismo dispositivo (localhost, 127.x) y los nombres y direcciones del propio coche. No vale para ningún otro sitio ni para el correo electrónico. Quien robe la tarjeta de memoria del coche podría hacerse pasar por cualquiera de ellos, por ejemplo por la página de tu router. Si se pierde la tarjeta, elimina el certificado.',
    download: 'Obtener el certificado',
    name: 'Nombre',
    fingerprint: 'SHA-256',
    second: '2. Instálalo',
    undo: 'Para deshacerlo, elimina el certificado en el mismo lugar.',
    third: '3. Comprueba si funciona',
    check: 'Comprobar',
    open: 'Abrir el coche por https',

    asking: 'Esperando al coche…',
    silent: 'El coche no responde. Comprueba que este dispositivo está en su red y vuelve a cargar esta página.',
    needless: 'Aquí solo este ordenador puede abrir el coche, sin https. No hace falta certificado.',
    looking: 'Comprobando…',
    trusted: 'Funciona: este navegador confía en el coche. (El resultado es el mismo si hace poco continuaste a pesar del aviso.)',
    strange: 'Todavía no: este navegador no confía en el coche. Sigue los pasos de arriba, reinicia el navegador, abre esta página de nuevo y vuelve a comprobar.',
    secure: 'Esta página se cargó por https. Si el navegador no avisó, confía en el coche. Para asegurarte, abre {address}.',

    // How each system is told.
    get: 'Obtén el certificado.',
    ios: {
      get: 'Abre esta página en Safari, obtén el certificado y pulsa Permitir.',
      install: 'Ajustes, General, VPN y gestión de dispositivos: pulsa el certificado, Instalar.',
      trust: 'Ajustes, General, Información, Ajustes de confianza de certificados: actívalo.',
    },
    android: {
      install: 'Ajustes, Seguridad y privacidad, Más ajustes de seguridad, Cifrado y credenciales, Instalar un certificado, Certificado de CA, Instalar de todos modos: elige el archivo. (Busca «certificado de CA» en los ajustes si los tuyos están en otro orden.)',
      firefox: 'Solo Firefox: Ajustes, Acerca de Firefox, pulsa el logotipo cinco veces; luego Ajustes, Secret Settings, usar certificados de CA de terceros.',
    },
    windows: {
      get: 'Obtén el certificado y abre el archivo.',
      install: 'Instalar certificado, Usuario actual, Colocar todos los certificados en el siguiente almacén, Examinar: Entidades de certificación raíz de confianza.',
      finish: 'Finalizar, y responde Sí a la advertencia.',
    },
    macos: {
      get: 'Obtén el certificado y abre el archivo: Acceso a Llaveros lo añade a «inicio de sesión».',
      trust: 'Ábrelo en Acceso a Llaveros, luego Confiar, «Al utilizar este certificado»: Confiar siempre.',
      close: 'Cierra la ventana e introduce tu contraseña.',
    },
    linux: {
      chrome: 'Chrome, Chromium: Configuración, Privacidad y seguridad, Seguridad, Gestionar certificados, Entidades emisoras (o Personalizado, Instalado por ti), Importar: confía en él para sitios web.',
      firefox: 'Firefox: Ajustes, Privacidad y seguridad, Ver certificados, Autoridades, Importar: confía en él para identificar sitios web.',
    },
  },
});
