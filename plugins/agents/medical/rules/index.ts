import { ACUTE_ABDOMEN } from './acute-abdomen.ts';
import { AMPUTATION } from './amputation.ts';
import { ANAPHYLAXIS } from './anaphylaxis.ts';
import { BREATHING } from './breathing.ts';
import { BREATHLESSNESS } from './breathlessness.ts';
import { BURNS } from './burns.ts';
import { CARBON_MONOXIDE } from './carbon-monoxide.ts';
import { CARDIAC_ARREST } from './cardiac-arrest.ts';
import { CAUDA_EQUINA } from './cauda-equina.ts';
import { CHEST_PAIN } from './chest-pain.ts';
import { CHOKING } from './choking.ts';
import { DIABETIC_KETOACIDOSIS } from './diabetic-ketoacidosis.ts';
import { DROWNING } from './drowning.ts';
import { ELECTRIC_SHOCK } from './electric-shock.ts';
import { EYE_INJURY } from './eye-injury.ts';
import { FETAL_MOVEMENT } from './fetal-movement.ts';
import { HEAD_INJURY } from './head-injury.ts';
import { HEAT_STROKE } from './heat-stroke.ts';
import { HYPOGLYCAEMIA } from './hypoglycaemia.ts';
import { HYPOTHERMIA } from './hypothermia.ts';
import { ILL_CHILD } from './ill-child.ts';
import { IMMUNOCOMPROMISED_FEVER } from './immunocompromised-fever.ts';
import { INFANT_FEVER } from './infant-fever.ts';
import { LABOUR } from './labour.ts';
import { MAJOR_TRAUMA } from './major-trauma.ts';
import { MENINGITIS } from './meningitis.ts';
import { OVERDOSE_OR_POISONING } from './overdose-or-poisoning.ts';
import { PALPITATIONS } from './palpitations.ts';
import { PRE_ECLAMPSIA } from './pre-eclampsia.ts';
import { PREGNANCY_BLEEDING } from './pregnancy-bleeding.ts';
import type { Rule } from './rule.ts';
import { SEPSIS } from './sepsis.ts';
import { SEVERE_BLEEDING } from './severe-bleeding.ts';
import { STROKE } from './stroke.ts';
import { SUICIDAL_INTENT } from './suicidal-intent.ts';
import { TESTICULAR_TORSION } from './testicular-torsion.ts';
import { THUNDERCLAP_HEADACHE } from './thunderclap-headache.ts';
import { TISSUE_INFECTION } from './tissue-infection.ts';
import { UNCONSCIOUS_OR_FIT } from './unconscious-or-fit.ts';

/** All rules, in the order in which they are told: what threatens life fastest first. */
export const RULES: readonly Rule[] = Object.freeze([
  SUICIDAL_INTENT,
  OVERDOSE_OR_POISONING,
  CARBON_MONOXIDE,
  CARDIAC_ARREST,
  CHEST_PAIN,
  PALPITATIONS,
  BREATHING,
  BREATHLESSNESS,
  CHOKING,
  ANAPHYLAXIS,
  STROKE,
  THUNDERCLAP_HEADACHE,
  MENINGITIS,
  UNCONSCIOUS_OR_FIT,
  SEVERE_BLEEDING,
  AMPUTATION,
  SEPSIS,
  IMMUNOCOMPROMISED_FEVER,
  TISSUE_INFECTION,
  DIABETIC_KETOACIDOSIS,
  HYPOGLYCAEMIA,
  TESTICULAR_TORSION,
  ACUTE_ABDOMEN,
  INFANT_FEVER,
  ILL_CHILD,
  PREGNANCY_BLEEDING,
  PRE_ECLAMPSIA,
  FETAL_MOVEMENT,
  LABOUR,
  HEAD_INJURY,
  CAUDA_EQUINA,
  MAJOR_TRAUMA,
  BURNS,
  EYE_INJURY,
  HEAT_STROKE,
  HYPOTHERMIA,
  ELECTRIC_SHOCK,
  DROWNING,
]);
