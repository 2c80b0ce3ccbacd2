import type { Language } from '../../engine/language.ts';
import type { Lexicon } from '../../engine/phrases.ts';
import { compileLexicons } from '../../engine/sightings.ts';
import de from './de.json' with { type: 'json' };
import en from './en.json' with { type: 'json' };
import es from './es.json' with { type: 'json' };
import fr from './fr.json' with { type: 'json' };
import it from './it.json' with { type: 'json' };

/**
 * Names of medicines and parts of such names, for all languages: substances by the endings that the WHO gives to a class
 * (INN stems), and names under which they are sold in Europe and America.
 */
const MEDICINES = [
  // Endings of international nonproprietary names.
  '*ipril, *lapril, *nopril, *topril, *dopril, *napril, *zepril, *dapril, *xipril, *zapril, *sartan, *sartano, *olol, *ololo, *statin, *statine, *statina, *statinen, *statins, *cillin, *cilina, *cillina, *cilline, *mycin, *micina, *mycine, *prazol, *prazole, *prazolo, *conazol, *conazole, *conazolo, *oxetin, *oxetine, *oxetina, *azepam, *zolam, *solon, *solone, *metasona, *nisona, *tisona, *casona, *nisone, *metasone, *tisone, *casone, *lasone, *metason, *formin, *formina, *formine, *gliptin, *gliptina, *gliptine, *gliflozin, *gliflozina, *glutid, *glutide, *glutida, *xaban, *xabano, *parin, *parina, *parine, *profen, *profeno, *profene, *fenac, *fenaco, *dipin, *dipino, *dipine, *triptan, *triptano, *barbital, *codon, *codona, *floxacin, *floxacino, *floxacine, *floxacina, *cyclin, *cyclina, *cycline, *ciclina, *lukast, *meterol, *meterolo, *moterol, *moterolo, *noterol, *noterolo, *caterol, *lanterol, *buterol, *atadine, *atadin, *atadina, *tirizin, *tirizine, *tirizina, *tidin, *tidina, *tidine, *azosin, *zosin, *thiazid*, *tiazid*, *semid, *semide, *semida, *lactone, *lactona, *lacton, *setron, *pidem, *clone, *clon, *triptylin*, *triptilin*, *faxin, *faxine, *faxina, *traline, *tralin, *tralina, *pram, *prame, *apin, *apine, *apina, *peridon, *peridone, *peridona, *azapine, *epam',
  // Substances.
  'paracetamol, paracetamolo, paracétamol, acetaminophen, ibuprofen, ibuprofeno, ibuprofène, ibuprofene, aspirin, aspirina, aspirine, ass, metamizol, metamizole, naproxen, diclofenac, codeine, codein, codeina, codéine, tramadol, tramadolo, tilidin, morphine, morphin, morfina, oxycodone, fentanyl, fentanilo, insulin, insuline, insulina, lithium, litio, warfarin, warfarina, digoxin, digitoxin, digossina, methotrexate, methotrexat, metotrexato, metotressato, levothyroxine, levothyroxin, lévothyroxine, levotiroxina, thyroxine, l thyroxin, prednisone, prednisolone, prednisolon, prednisona, prednisolona, cortisone, cortison, cortisona, kortison, cortisol, hydrocortisone, dexamethasone, salbutamol, salbutamolo, budesonide, budesonid, amiodarone, amiodaron, allopurinol, colchicine, colchicin, gabapentin, pregabalin, valproate, valproat, carbamazepine, carbamazepin, lamotrigine, lamotrigin, melatonin, melatonina, mélatonine, loperamide, loperamid, loperamida, domperidone, metoclopramide, cetirizine, loratadine, clopidogrel, spironolactone, furosemide, bisoprolol, ramipril, metformin, testosterone, estrogen, estradiol, progesterone, finasteride, sildenafil, nitroglycerin, nitroglycerine, adrenaline, epinephrine, heparin, quetiapine, olanzapine, risperidone, haloperidol, clozapine, mirtazapine, bupropion, trazodone, melperon, pantoprazol, doxylamine, diphenhydramine, pseudoephedrine, guaifenesin, dextromethorphan, simethicone, lactulose, macrogol, magnesium, magnésium, magnesio, zinc, potassium, iron tablets, eisentabletten, valerian, valériane, valeriana, baldrian, baldriantropfen, semaglutide, charcoal tablets, kohletabletten',
  'warfarine, digoxine, digoxina, héparine, prégabaline, pregabalina, gabapentine, gabapentina, carbamazépine, carbamazepina, lamotrigina, valproato, colquicina, colchicina, alopurinol, allopurinolo, amiodarona, amiodarone, loperamide, lopéramide, loperamida, cétirizine, cetirizina, domperidona, dompéridone, metoclopramida, metoclopramide, métoclopramide, halopéridol, adrenalina, adrénaline, heparina, eparina, tiroxina, tramadol, ácido acetilsalicílico, acido acetilsalicilico, acetylsalicylsäure, acide acétylsalicylique, novaminsulfon, opipramol, doxepin, promethazin, bromazepam, dexketoprofeno, dexibuprofeno, ketorolac, ketorolaco, nimesulid, etoricoxib, celecoxib, prednison, torasemid, torasemide, hct, eplerenone, eplerenona, ivabradine, digitoxina, tamsulosin, tamsulosina, tamsulosine, ondansetron, dimenhydrinat, dimenhydrinate, dimenhidrinato, racecadotril, macrogol, ferrous sulfate, ferrous sulphate, folic acid, folsäure, acide folique, ácido fólico, acido folico, vitamin b12, calcium tablets, kalium, potasio, potassio',
  // Brands.
  'tylenol, panadol, calpol, advil, nurofen, motrin, aleve, voltaren, voltarène, voltarol, voltadol, brufen, dolormin, dalsy, apiretal, junifen, doliprane, dafalgan, efferalgan, ben u ron, benuron, gelocatil, termalgin, tachipirina, oki, okitask, buscofen, enantyum, espidifen, neobrufen, frenadol, couldina, almax, buscapina, buscapina, flutox, ebastel, thomapyrin, grippostad, pantozol, iberogast, talcid, toplexil, actifed, humex, strepsils, vogalène, tiorfan, spasmex, plasil, enterogermina, lansox, clenil, broncovaleas, minias, entact, synthroid, robitussin, nyquil, pepto bismol, alka seltzer, sudafed, lemsip, night nurse, beechams, piriton, piriteze, dioralyte, gas x, excedrin, midol, prilosec, lomotil, dramamine, bonine, aulin, nolotil, novalgin, novalgina, novamin, nimesulide, xanax, valium, tavor, temesta, lexomil, lexotan, lexotanil, rivotril, orfidal, trankimazin, lexatin, lorazepam, stilnox, ambien, imovane, zoloft, prozac, cipralex, cipramil, seroplex, lexapro, paxil, deroxat, effexor, trevilor, cymbalta, wellbutrin, remeron, seroquel, zyprexa, abilify, risperdal, ritalin, ritaline, concerta, adderall, lyrica, neurontin, tegretol, depakine, depakin, keppra, lamictal, xarelto, eliquis, pradaxa, lixiana, coumadin, coumadine, marcumar, falithrom, sintrom, aldocumar, préviscan, previscan, plavix, brilique, aspirin protect, kardégic, kardegic, cardioaspirina, adiro, lovenox, clexane, lantus, toujeo, tresiba, levemir, humalog, novorapid, apidra, victoza, ozempic, wegovy, mounjaro, trulicity, januvia, jardiance, forxiga, glucophage, ventolin, ventoline, symbicort, foster, seretide, viani, pulmicort, spiriva, atrovent, berodual, sultanol, bricanyl, flixotide, singulair, euthyrox, eutirox, eltroxin, levothyrox, l thyroxine, cortancyl, solupred, decortin, medrol, urbason, dacortin, deltacortene, bentelan, lipitor, crestor, zocor, sortis, tahor, lasix, aldactone, norvasc, concor, beloc, tenormin, inderal, diovan, cozaar, triatec, delix, nexium, losec, mopral, inexium, omeprazol, zantac, gaviscon, maalox, rennie, buscopan, spasfon, imodium, fortasec, arestal, motilium, primperan, smecta, vomex, zyrtec, zirtec, claritin, clarityne, telfast, allegra, aerius, benadryl, polaramine, augmentin, amoxil, clamoxyl, zithromax, zitromax, ciproxin, bactrim, cotrim, monuril, flagyl, tamiflu, aciclovir, zovirax, viagra, cialis, nasivin, otrivin, otrivine, rinofluimucil, mucosolvan, fluimucil, acc, bisolvon, gelomyrtol, dulcolax, movicol, microlax, fenistil, bepanthen, fucidin, canesten, daktarin, betnovate, dermovate, nitrospray, natispray, trinitrine, corvaton, levodopa, madopar, sinemet, donepezil, aricept, humira, enbrel, methadone, subutex, suboxone, naloxone, narcan, champix, nicorette, depo provera, yasmin, mirena, microgynon, roaccutane, accutane, minoxidil, propecia, antabuse',
].join(', ');

/** What answers say of medicines in each language: the names of medicines are the same for all. */
export const RELEASE_LEXICONS: Readonly<Record<Language, Lexicon>> = Object.freeze({
  en: withMedicines('en', en),
  de: withMedicines('de', de),
  fr: withMedicines('fr', fr),
  es: withMedicines('es', es),
  it: withMedicines('it', it),
});

function withMedicines(language: Language, lexicon: typeof en | typeof fr): Lexicon {
  const { concepts } = lexicon;
  return {
    ...lexicon,
    language,
    concepts: { ...concepts, medicine: `${MEDICINES}, ${concepts.medicine}`, medicine_name: MEDICINES },
  };
}

/** The words for medicines made ready for search. */
export const RELEASE_COMPILED = compileLexicons(RELEASE_LEXICONS);
